// The keeper's loop: serves requests of its clients until none is left. One thread.
#pragma once

#include <map>
#include <vector>

#include "runtime/keeper/message.h"
#include "runtime/keeper/source.h"

namespace smt::runtime::keeper {

class Keeper {
public:
    explicit Keeper(Source& source) : source_(source) {}
    // Returns when the last client has closed its socket. Owns the sockets.
    void serve(int socket);

private:
    static constexpr size_t kMostClients = 8;  // a server and its standbys

    bool answer(int client);  // false: the client is gone, or says nonsense
    bool create(int client, const Request& request);
    bool list(int client, uint64_t after);
    bool add_client(int client, const std::vector<int>& files);

    Source& source_;
    std::vector<int> clients_;
    std::map<uint64_t, Chunk> chunks_;  // by id
    uint64_t next_ = 1;
};

}  // namespace smt::runtime::keeper
