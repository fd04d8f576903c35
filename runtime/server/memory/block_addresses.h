// Addresses for blocks of host memory: pieces of one mapping, which is made once.
//
// A mapping of its own for each block changes the process's list of mappings. Such a change waits for the
// pages that other threads are making, and those that come wait for it: on an H200's host twelve threads made
// and pinned 12 GB a second so, and 32 in pieces of one mapping (tools/bench/probes/pinning.cpp).
//
// Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace smt::runtime::server {

class BlockAddresses {
public:
    // `bytes` in all, in pieces of `piece` bytes each, which is a multiple of 2 MiB. Where the system does
    // not reserve so many addresses, and when all pieces are taken, each piece has a mapping of its own.
    BlockAddresses(uint64_t piece, uint64_t bytes);
    ~BlockAddresses();
    BlockAddresses(const BlockAddresses&) = delete;
    BlockAddresses& operator=(const BlockAddresses&) = delete;

    // A piece without pages; those that it gets are huge where the system has such. Null: out of addresses.
    char* take();
    // The piece's pages are freed.
    void give_back(char* piece);

private:
    char* map(uint64_t bytes) const;

    const uint64_t piece_;
    char* begin_ = nullptr;
    uint64_t bytes_ = 0;  // from begin_
    std::mutex mutex_;
    std::vector<char*> left_;  // guarded by mutex_
};

}  // namespace smt::runtime::server
