// A keeper's client. Any thread; requests of several threads take turns.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/keeper/message.h"

namespace smt::runtime::keeper {

// Results are CUresults; kLost: the keeper is gone, and will not come back.
class Client {
public:
    explicit Client(int socket) : socket_(socket) {}  // owns the socket
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    struct Given {
        Chunk chunk;
        int file = -1;  // the receiver closes it
    };
    int create(uint64_t bytes, Given* given);  // its memory may have any contents
    int release(uint64_t id);                  // the memory is freed when it is mapped nowhere any more
    int list(std::vector<Given>* chunks);
    int add_client(int socket);  // the caller closes the socket, of which the keeper has its own copy
    bool lost() const;           // asks the socket; does not block

private:
    int ask(const Request& request, const std::vector<int>& sent, Answer* answer, std::vector<int>* files);

    const int socket_;
    mutable std::mutex mutex_;
};

struct Started {
    int socket = -1;  // -1: it does not run
    int pid = -1;
    std::string problem;
};
// Starts smt-keeper and waits until it is ready. `driver`: the path of the driver's library; empty: memfds.
// stderr is the caller's.
Started start(const std::string& program, const std::string& driver);
// "was killed by signal 9", "exited with 1": of a child that has ended; empty: it runs.
std::string how_it_ended(int pid);

}  // namespace smt::runtime::keeper
