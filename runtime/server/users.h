// The users of a system's server (smtd --system): what they are called, what the administrator grants them
// (runtime/settings/grants.h), and what they have now. A user's own server has none.
//
// A user is a uid, of the kernel's (peer.h). It has one name as long as the server lives, so that what is
// known of its tenants stays with it.
//
// Any thread. Names are asked of the system (getpwuid) on the thread of the user's own connection.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/server/memory/memory_account.h"
#include "runtime/settings/grants.h"

namespace smt::runtime::server {

// With every default filled in.
struct Granted {
    uint64_t memory = 0;  // bytes; 0: all of the device's
    uint32_t sessions = 0;
    int32_t priority = 0;
    uint32_t weight_thousandths = 0;
    bool administers = false;
};

class Users {
public:
    explicit Users(settings::Grants grants) : grants_(std::move(grants)) {}

    // The account's name; its number in digits where it has none, or one that is a number.
    std::string name_of(uid_t user);
    Granted granted(uid_t user, const std::vector<gid_t>& groups);

    // One of the user's sessions, as long as it exists.
    class Place {
    public:
        Place(Users& users, uid_t user) : users_(users), user_(user) {}
        ~Place();
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;

    private:
        Users& users_;
        const uid_t user_;
    };
    // Null: it has that many. Waits for a moment: the last program's session ends behind the program.
    std::unique_ptr<Place> enter(uid_t user, uint32_t most,
                                 std::chrono::milliseconds patience = std::chrono::seconds(2));

    // The device memory of all the user's tenants. limit: bytes; 0: the device's; the last one counts.
    MemoryAccountPointer account_of(uid_t user, uint64_t limit);

private:
    const settings::Grants grants_;
    std::mutex mutex_;
    std::condition_variable left_;
    std::map<uid_t, std::string> names_;
    std::map<uid_t, uint32_t> sessions_;
    std::map<uid_t, std::weak_ptr<MemoryAccount>> accounts_;
};

// A tenant's name without its user, as programs and the administrator's lists of names have it. users: null:
// there is none in it.
inline std::string_view without_user(const Users* users, std::string_view tenant) {
    return users ? tenant.substr(tenant.find('/') + 1) : tenant;
}

}  // namespace smt::runtime::server
