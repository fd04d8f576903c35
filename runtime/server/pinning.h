// Threads that make blocks of host memory for moves (memory/spare_blocks.h): beside the move that takes them,
// and ahead of the next one.
//
// Making pages takes a thread most of the time, and pinning them takes turns in the driver. On an H200's host
// (64 processors) a thread alone pins 5 GB a second, two 10, four 17, eight 27 to 29, and twelve 32, which is
// what the driver pins. There are 7, or half as many as processors where that is less, and 2 at least.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/server/memory/spare_blocks.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

class Server;

class Pinning {
public:
    Pinning(Server& server, SpareBlocks& blocks);
    ~Pinning();
    Pinning(const Pinning&) = delete;
    Pinning& operator=(const Pinning&) = delete;

    static constexpr size_t kLeast = 2, kMost = 7;  // of its threads
    void begin();

private:
    Server& server_;
    SpareBlocks& blocks_;
    std::vector<Thread> helpers_;
};

}  // namespace smt::runtime::server
