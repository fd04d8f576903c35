// The device addresses that a session may pass in calls. All others are refused: memory of other tenants and
// of the server itself.
//
//   own := the device range | a further range | a pinned arena allocation | a variable of a loaded image
//
// The check costs two comparisons for the device range, else a lookup in an ordered map. Any thread; the lock
// is a leaf lock.
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>

#include "runtime/server/memory/watched_constants.h"

namespace smt::runtime::server {
class Arena;
}

namespace smt::runtime::server {

class TenantAddresses {
public:
    TenantAddresses(const Arena& arena, uint64_t base, uint64_t bytes)
        : arena_(arena), base_(base), bytes_(bytes) {}
    TenantAddresses(const TenantAddresses&) = delete;
    TenantAddresses& operator=(const TenantAddresses&) = delete;

    // `owner` is a key for forget() and is never dereferenced.
    void add(uint64_t base, uint64_t bytes, const void* owner);
    void forget(const void* owner);
    bool any_elsewhere() const;  // add() was called, and forget() was not
    WatchedConstants& constants() { return constants_; }
    const WatchedConstants& constants() const { return constants_; }

    // In the device range: what is not may be in a further range, or elsewhere than on the device.
    bool in_device_range(uint64_t address, uint64_t bytes) const {
        const uint64_t skipped = address - base_;
        return skipped < bytes_ && bytes <= bytes_ - skipped;
    }
    // Whether the session may access the bytes. An empty range is allowed at any address.
    bool may_touch(uint64_t address, uint64_t bytes) const {
        return in_device_range(address, bytes) || bytes == 0 || elsewhere(address, bytes);
    }

private:
    struct Place {
        uint64_t bytes;
        const void* owner;
    };
    bool elsewhere(uint64_t address, uint64_t bytes) const;

    const Arena& arena_;
    const uint64_t base_;
    const uint64_t bytes_;
    mutable std::shared_mutex mutex_;
    std::map<uint64_t, Place> places_;  // base -> place
    WatchedConstants constants_;
};

}  // namespace smt::runtime::server
