// Whether the workers of runs with quotas were where the quotas said, by what they wrote down themselves: one table
// after the other, and sums over all. A run whose table was changed meanwhile does not count, since a worker may keep to
// the one or the other.
//
// Not thread-safe; its stream's lock guards it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/dispatch/control_block.h"

namespace smt::runtime::dispatch {

class Placement {
public:
    struct Sums {
        uint64_t tables = 0;    // runs with a table each
        uint64_t workers = 0;   // that ran a block
        uint64_t blocks = 0;    // of theirs
        uint64_t astray = 0;    // of those, blocks of workers on a multiprocessor without room for them
        uint64_t fullest = 0;   // most workers at a time on a multiprocessor with a quota
        uint64_t beyond = 0;    // most workers at a time above a quota
        uint64_t lost = 0;      // workers of which the ring has nothing any more
    };

    void begin(uint32_t launch, const QuotaTable& quotas);
    void change() { counts_ = false; }   // the table
    void add(const std::vector<smt::Mapping>& workers, uint64_t lost);   // also of other launches
    void end();                          // all have left
    const Sums& sums() const { return sums_; }

private:
    void judge(uint8_t quota, std::vector<smt::Mapping>& workers);   // of one multiprocessor

    bool counts_ = false;
    uint32_t launch_ = 0;
    QuotaTable quotas_;
    std::vector<smt::Mapping> workers_;
    uint64_t lost_ = 0;
    Sums sums_;
};

}  // namespace smt::runtime::dispatch
