// What sessions of one tenant share: objects by tokens of random bytes.
//
//   token -> kind, family, session, object
//
// The family is the tenant's identity (family_of() below). Only a session of the family that added the object
// finds it. The object is held by its owners, so a token ends with them. An object that a descriptor stands
// for is held by the table, too: until the descriptor's last copy is closed, or, where the table has no file
// to see that by, until the session that added it ends.
//
// The table knows no session and no driver. Any thread; the lock is a leaf lock, and no object is destroyed
// under it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/protocol/handshake.h"
#include "runtime/protocol/sharing.h"

namespace smt::runtime::server {

// Sessions with the same text belong to one tenant: the family that the program inherited, else its tenant's
// name.
std::string family_of(const protocol::Hello& hello);

class Sharing {
public:
    using Token = protocol::ShareToken;
    using Object = std::shared_ptr<void>;  // never null

    Sharing() = default;
    ~Sharing();
    Sharing(const Sharing&) = delete;
    Sharing& operator=(const Sharing&) = delete;

    // The token of the object; the same one for each call of a session. Nothing: the system gives no random
    // bytes. `held`: the table holds the object.
    std::optional<Token> add(protocol::SharedKind kind, const std::string& family, uint32_t session,
                             const Object& object, bool held);
    // `file`: the descriptor that stands for an object which the session has added as `held`, or a copy of
    // it. The caller keeps it. False: there is no such object, or the file cannot be used.
    bool watch(const Token& token, uint32_t session, int file);

    enum class Answer { kFound, kUnknown, kForeign };  // kForeign: it is another tenant's
    struct Found {
        Answer answer = Answer::kUnknown;
        uint32_t session = 0;  // that added it
        Object object;
    };
    Found find(protocol::SharedKind kind, const Token& token, const std::string& family);

    // Lets go of what no descriptor stands for any more, and forgets tokens of objects that are gone.
    void sweep();
    void ended(uint32_t session);
    bool holds_for(uint32_t session) const;  // what a descriptor of the session stands for
    uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }  // kForeign answers
    size_t size() const;

private:
    using Key = std::array<unsigned char, protocol::kTokenBytes>;
    struct Entry {
        protocol::SharedKind kind;
        std::string family;
        uint32_t session = 0;
        std::weak_ptr<void> object;
        Object held;    // null: its owners hold it
        int file = -1;  // an open description of its own of the descriptor's file; -1: none
    };

    static Key key_of(const Token& token);
    static bool closed(const Entry& entry);  // no copy of the descriptor is left

    std::atomic<uint64_t> refused_{0};
    mutable std::mutex mutex_;
    std::map<Key, Entry> entries_;
};

}  // namespace smt::runtime::server
