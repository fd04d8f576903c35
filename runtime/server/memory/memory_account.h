// The bytes of one kind of memory that a session holds, against its limit, and the share of one object.
//
// A session's account may be part of its tenant's, which all the tenant's programs share (tenant_accounts.h).
//
//   Charge charge;
//   if (!charge.take(account, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;   // beyond the limit
//   ... the object keeps `charge`; its destruction returns the bytes
//
// Any thread may use an account. A charge belongs to the object that keeps it, and may outlive the session.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/server/memory/room_line.h"

namespace smt::runtime::server {

class MemoryAccount {
public:
    // limit: bytes; 0: no limit. `whole`: what is taken counts there, too, and needs room there.
    explicit MemoryAccount(uint64_t limit, std::shared_ptr<MemoryAccount> whole = nullptr)
        : limit_(limit), whole_(std::move(whole)) {}

    bool take(uint64_t bytes) {
        const bool room = !whole_ || whole_->take(bytes);
        if (room && take_here(bytes)) return true;
        refused_.fetch_add(1, std::memory_order_relaxed);
        if (room && whole_) whole_->give(bytes);
        return false;
    }
    void give(uint64_t bytes) {
        held_.fetch_sub(bytes, std::memory_order_relaxed);
        if (whole_) whole_->give(bytes);
        RoomLine::of_process().note_room();
    }
    // What is held beyond a lower limit stays.
    void set_limit(uint64_t limit) {
        limit_.store(limit, std::memory_order_relaxed);
        RoomLine::of_process().note_room();
    }
    uint64_t held() const { return held_.load(std::memory_order_relaxed); }
    uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
    uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }  // so many times
    const MemoryAccount& whole() const { return whole_ ? *whole_ : *this; }

private:
    bool take_here(uint64_t bytes) {
        uint64_t held = held_.load(std::memory_order_relaxed);
        const uint64_t limit = this->limit(), most = limit ? limit : ~uint64_t{0};
        do {
            if (bytes > most || held > most - bytes) return false;
        } while (!held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
        return true;
    }

    std::atomic<uint64_t> limit_, held_{0}, refused_{0};
    const std::shared_ptr<MemoryAccount> whole_;
};
using MemoryAccountPointer = std::shared_ptr<MemoryAccount>;

class Charge {
public:
    Charge() = default;
    ~Charge() { drop(); }
    Charge(Charge&& other) noexcept
        : account_(std::move(other.account_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Charge& operator=(Charge&& other) noexcept {
        if (this == &other) return *this;
        drop();
        account_ = std::move(other.account_);
        bytes_ = std::exchange(other.bytes_, 0);
        return *this;
    }

    // Changes the charge to `bytes`. False: beyond the limit; the charge is unchanged.
    bool take(const MemoryAccountPointer& account, uint64_t bytes) {
        if (bytes > bytes_ && !account->take(bytes - bytes_)) return false;
        if (bytes < bytes_) account->give(bytes_ - bytes);
        account_ = account;
        bytes_ = bytes;
        return true;
    }
    // Of bytes that the account has taken already.
    static Charge of_taken(const MemoryAccountPointer& account, uint64_t bytes) {
        Charge charge;
        charge.account_ = account;
        charge.bytes_ = bytes;
        return charge;
    }
    uint64_t bytes() const { return bytes_; }

private:
    void drop() {
        if (bytes_) account_->give(bytes_);
        bytes_ = 0;
    }

    MemoryAccountPointer account_;
    uint64_t bytes_ = 0;
};

}  // namespace smt::runtime::server
