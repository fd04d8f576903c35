// The __constant__ variables whose addresses a program has, where a process may take its session over: that
// one loads the images again, and their constants lie elsewhere. It can go on if a copy in the session's own
// memory has all that calls wrote to them, since kernels do not write constants.
//
//   if (constants.meet(address, bytes)) ... a call with that address is checked: it may write
//   ... the operation, with find(address)->actual, and behind it a copy of the whole variable to `copy`
//   constants.follow();                     // else all_followed() is false from then on
//
// Without any constant all this is one load. Any thread; the lock is a leaf lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>

namespace smt::runtime::server {

class WatchedConstants {
public:
    struct Constant {
        uint64_t given = 0;  // the address that the program has; another one than `actual` after a takeover
        uint64_t bytes = 0;
        uint64_t actual = 0;  // the driver's
        uint64_t copy = 0;    // of its value, in the session's memory
    };

    // `owner` is a key for forget() and is never dereferenced. False: the program has one of these addresses
    // for something else.
    bool add(const Constant& constant, const void* owner) {
        std::unique_lock lock(mutex_);
        const auto next = constants_.lower_bound(constant.given);
        if (next != constants_.end() && next->first - constant.given < constant.bytes) return false;
        if (next != constants_.begin() && holds(std::prev(next)->second.constant, constant.given))
            return false;
        constants_.emplace(constant.given, Watched{constant, owner});
        any_.store(true);
        return true;
    }
    void forget(const void* owner) {
        std::unique_lock lock(mutex_);
        std::erase_if(constants_, [owner](const auto& each) { return each.second.owner == owner; });
        any_.store(!constants_.empty());
    }

    std::optional<Constant> find(uint64_t address) const {
        if (!any_.load(std::memory_order_acquire)) return std::nullopt;
        std::shared_lock lock(mutex_);
        const auto next = constants_.upper_bound(address);
        if (next == constants_.begin() || !holds(std::prev(next)->second.constant, address))
            return std::nullopt;
        return std::prev(next)->second.constant;
    }
    // Whether the bytes lie in one. It may be written from now on.
    bool meet(uint64_t address, uint64_t bytes) const {
        const auto constant = find(address);
        if (!constant) return false;
        met_.fetch_add(1);
        return bytes <= constant->bytes - (address - constant->given);
    }
    // A call that met one has copied it.
    void follow() const { followed_.fetch_add(1); }
    bool all_followed() const { return met_.load() == followed_.load(); }

    // A kernel's parameters. kHere: they name a constant, which nothing follows from now on. kMoved: they do
    // by an address that is none any more.
    enum class Named { kNone, kHere, kMoved };
    Named meet_in(const char* parameters, uint64_t bytes) const {
        if (!any_.load(std::memory_order_acquire)) return Named::kNone;
        Named found = Named::kNone;
        for (uint64_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
            uint64_t word = 0;
            std::memcpy(&word, parameters + at, sizeof word);
            const auto constant = find(word);
            if (!constant) continue;
            if (constant->given != constant->actual) return Named::kMoved;
            met_.fetch_add(1);
            found = Named::kHere;
        }
        return found;
    }

private:
    struct Watched {
        Constant constant;
        const void* owner;
    };
    static bool holds(const Constant& constant, uint64_t address) {
        return address - constant.given < constant.bytes;
    }

    mutable std::shared_mutex mutex_;
    std::map<uint64_t, Watched> constants_;  // by the given address
    std::atomic<bool> any_{false};           // there are some
    mutable std::atomic<uint64_t> met_{0}, followed_{0};
};

}  // namespace smt::runtime::server
