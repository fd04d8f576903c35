// Threads that make blocks of host memory for moves (memory/spare_blocks.h): beside the move that takes them,
// and ahead of the next one.
//
// With the thread that moves there are three that make blocks. On an H100's host one alone pins half as much
// as two or three, and four no more than these.
#pragma once

#include <array>

#include "runtime/server/memory/spare_blocks.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

class Server;

class Pinning {
public:
    Pinning(Server& server, SpareBlocks& blocks) : server_(server), blocks_(blocks) {}
    ~Pinning();
    Pinning(const Pinning&) = delete;
    Pinning& operator=(const Pinning&) = delete;

    void begin();

private:
    Server& server_;
    SpareBlocks& blocks_;
    std::array<Thread, 2> helpers_;
};

}  // namespace smt::runtime::server
