// An allocator of address blocks in regions. It deals with addresses only: no memory, no driver. Not
// thread-safe.
//
// Best fit: the smallest free block that is large enough, the lowest address among equals. A released block
// merges with its free neighbours in the same region. Regions never merge, because each must be removable as
// a whole. Example with granularity 512 and one region [0x1000, 0x1800):
//
//   allocate(100) = 0x1000    allocate(512) = 0x1200    release(0x1000)    allocate(600) = 0x1400
//
// Free blocks are kept in two ordered maps (by address for merging, by size for lookup), so operations take
// logarithmic time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace smt::runtime::server {

class BlockAllocator {
public:
    struct Block {
        uint64_t base = 0;
        uint64_t bytes = 0;  // occupied; a multiple of the granularity
        uint64_t requested = 0;
    };

    // granularity: a power of two; blocks start and end at its multiples.
    explicit BlockAllocator(uint64_t granularity) : granularity_(granularity) {}

    // Adds a free region. It must not overlap another and must not start at 0.
    void add(uint64_t base, uint64_t bytes);
    // Removes one region without blocks in use and returns (base, bytes); {0, 0}: none.
    std::pair<uint64_t, uint64_t> take_idle_region();

    // Both return 0 if there is no room. alignment: a power of two; 0 means the granularity.
    uint64_t allocate(uint64_t bytes, uint64_t alignment = 0);
    uint64_t allocate_at(uint64_t address, uint64_t bytes);
    // Returns the released bytes; 0: no block in use starts there.
    uint64_t release(uint64_t address);
    void release_all();

    // The block in use that contains the address; bytes 0: none.
    Block find(uint64_t address) const;

    uint64_t used_bytes() const { return used_bytes_; }
    uint64_t requested_bytes() const { return requested_bytes_; }  // of blocks in use
    uint64_t region_bytes() const { return region_bytes_; }        // of all regions
    std::vector<Block> used() const;                               // all blocks in use, by address
    std::vector<std::pair<uint64_t, uint64_t>> regions() const;    // (base, bytes)
    uint64_t idle_bytes() const { return idle_bytes_; }            // in regions without blocks in use

private:
    struct Region {
        uint64_t bytes;
        uint64_t blocks;  // in use
    };
    using Blocks = std::map<uint64_t, uint64_t>;

    uint64_t rounded(uint64_t bytes) const;
    Region& region_of(uint64_t address);
    void insert_free(uint64_t base, uint64_t bytes);
    void erase_free(Blocks::iterator block);
    uint64_t carve(Blocks::iterator block, uint64_t at, uint64_t bytes, uint64_t requested);

    uint64_t granularity_;
    uint64_t used_bytes_ = 0;
    uint64_t requested_bytes_ = 0;
    uint64_t region_bytes_ = 0;
    uint64_t idle_bytes_ = 0;
    std::map<uint64_t, Region> regions_;
    Blocks free_;                                           // base -> bytes
    std::set<std::pair<uint64_t, uint64_t>> free_by_size_;  // (bytes, base)
    std::map<uint64_t, Block> used_;
};

}  // namespace smt::runtime::server
