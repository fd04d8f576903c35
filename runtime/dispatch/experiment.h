// An experiment: what is done to a stream's launches in place of a policy's decisions. Stress, or a
// measurement.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dispatch/control_block.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class ManagedStream;

// A table with `ctas` CTAs on each SM of `places`, and none elsewhere.
inline QuotaTable even_table(int multiprocessors, const std::vector<uint32_t>& places, int ctas) {
    QuotaTable table(static_cast<size_t>(multiprocessors), 0);
    for (const uint32_t each : places)
        table[each] = static_cast<uint8_t>(std::min(ctas, static_cast<int>(smt::kNoQuota) - 1));
    return table;
}

class Experiment {
public:
    virtual ~Experiment() = default;
    // Called repeatedly while the stream has launches that wait or run. Carries out its action through
    // `stream`.
    virtual void step(ManagedStream& stream, const schedule::Kernel& kernel) = 0;
    virtual void idle(ManagedStream&) {}            // likewise while the stream has no launches
    virtual bool samples() const { return false; }  // step() needs the progress of running launches
    virtual std::string summary() const = 0;        // for the journal, at the stream's end
};

}  // namespace smt::runtime::dispatch
