// Placement: whether the workers of quota-mode runs were where the quotas allowed them, from the mappings
// that they wrote. One table after the other, and sums over all. A run with a changed table is not counted,
// because a worker may keep to either table.
//
// Not thread-safe: guarded by its stream's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/dispatch/control_block.h"

namespace smt::runtime::dispatch {

class Placement {
public:
    struct Sums {
        uint64_t tables = 0;   // runs, each with one table
        uint64_t workers = 0;  // that ran a block
        uint64_t blocks = 0;   // run by these workers
        uint64_t astray = 0;   // blocks of workers on an SM without a place for them
        uint64_t fullest = 0;  // most workers at a time on an SM with a quota
        uint64_t beyond = 0;   // most workers at a time above a quota
        uint64_t lost = 0;     // workers with a mapping overwritten in the ring
    };

    void begin(uint32_t launch, const QuotaTable& quotas);
    void change() { counts_ = false; }  // the table changed: the run is not counted
    void add(const std::vector<smt::Mapping>& workers, uint64_t lost);  // also of other launches
    void end();                                                         // all workers have left
    const Sums& sums() const { return sums_; }  // mappings of other launches are ignored

private:
    void judge(uint8_t quota, std::vector<smt::Mapping>& workers);  // of one SM

    bool counts_ = false;
    uint32_t launch_ = 0;
    QuotaTable quotas_;
    std::vector<smt::Mapping> workers_;
    uint64_t lost_ = 0;
    Sums sums_;
};

}  // namespace smt::runtime::dispatch
