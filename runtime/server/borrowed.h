// Sessions that exist until the object ends: their teardown waits for it.
#pragma once

#include <vector>

#include "runtime/server/server.h"

namespace smt::runtime::server {

class Borrowed {
public:
    // Of Server::borrow().
    Borrowed(Server& server, std::vector<Session*> borrowed)
        : server_(server), sessions(std::move(borrowed)) {}
    ~Borrowed() { server_.give_back(sessions); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

private:
    Server& server_;

public:
    std::vector<Session*> sessions;
};

}  // namespace smt::runtime::server
