// The driver's handles that one session holds, by kind. A handle that is not here does not exist
// for the session, whatever its value.
//
// A handle is adopted when the driver made it for the session: teardown destroys it. It is lent
// when another object owns it (the child graph of a node, a level of a mipmapped array): the
// session may use it, teardown leaves it alone. Physical memory and user objects are counted, as
// the driver counts them; the other kinds are sets.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "runtime/server/call.h"

namespace smt::runtime::server {

class Handles {
public:
    bool owned(HandleKind kind, uint64_t handle) const;
    void adopt(HandleKind kind, uint64_t handle);
    void lend(HandleKind kind, uint64_t handle);
    void forget(HandleKind kind, uint64_t handle);

    // Destroys what was adopted, in HandleKind's order, and forgets everything. The session's work
    // must be over. Pools are not destroyed here: they belong to TenantMemory.
    void destroy_all(const DriverApi& driver);

private:
    struct Entry {
        uint64_t count = 0;   // adopted that often; 0: lent
    };
    using Table = std::unordered_map<uint64_t, Entry>;

    mutable std::mutex mutex_;
    std::array<Table, static_cast<size_t>(HandleKind::kCount)> tables_;
};

}  // namespace smt::runtime::server
