// The process at the other end of a control socket: of which user it is, by the kernel (SO_PEERCRED), and
// what it may do there.
//
// A user's own server answers that user alone, and grants everything. A system's server (`users` is not null)
// answers all that reach its socket:
//
//   a tenant's name      begins with the user's: alice's "train" is "alice/train". So all that goes by names
//                        (limits, sharing, offences, suspension, the journal) keeps users apart
//   priority, weight,    at most what the user is granted (users.h); the session says which of them was
//   memory, targets      lowered (Hello::limited)
//   other users' tenants are an administrator's to see, change, suspend and stop
//
// Immutable; any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/protocol/handshake.h"
#include "runtime/server/users.h"

namespace smt::runtime::server {

class Peer {
public:
    // Nothing: it is not answered.
    static std::optional<Peer> of(int socket, Users* users);

    uid_t user() const { return user_; }
    bool administers() const { return !users_ || granted_.administers; }
    bool sees(uid_t user) const { return administers() || user == user_; }
    const Granted& granted() const { return granted_; }

    // As it is known here, of what the peer calls it. An administrator may name another user's tenant.
    std::string full_name(std::string_view tenant) const;
    // Makes a greeting the server's own: its names, its process, what it is granted. Empty, or why not.
    std::string admit(protocol::Hello& hello) const;
    // What was lowered, for the log; empty: nothing.
    static std::string lowered(const protocol::Hello& hello);
    // A change of terms, at most as granted. Empty, or why not.
    std::string why_no_terms(const protocol::TermsRequest& request) const;
    std::string why_no_limit(uint64_t memory) const;
    // `what`: "sets the policy".
    std::string why_not(std::string_view what) const;

private:
    Users* users_ = nullptr;
    uid_t user_ = 0;
    pid_t process_ = 0;   // 0: this process cannot see it
    std::string prefix_;  // "alice/"
    Granted granted_;
};

// The user of the socket's other end; this process's where it cannot be told.
uid_t user_of(int socket);

}  // namespace smt::runtime::server
