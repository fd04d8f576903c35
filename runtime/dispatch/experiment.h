// What is done to a stream's launches in place of a policy: stress, or measurements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dispatch/control_block.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class ManagedStream;

// So many CTAs on each of these multiprocessors, and none elsewhere.
inline QuotaTable even_table(int multiprocessors, const std::vector<uint32_t>& places, int ctas) {
    QuotaTable table(static_cast<size_t>(multiprocessors), 0);
    for (const uint32_t each : places) table[each] = static_cast<uint8_t>(std::min(ctas, static_cast<int>(smt::kNoQuota) - 1));
    return table;
}

class Experiment {
public:
    virtual ~Experiment() = default;
    // Called again and again while the stream has launches that wait or run; says what was done through the stream.
    virtual void step(ManagedStream& stream, const schedule::Kernel& kernel) = 0;
    virtual void idle(ManagedStream&) {}             // likewise while it has none
    virtual bool samples() const { return false; }   // step() wants to know of running launches how far they are
    virtual std::string summary() const = 0;   // for the journal, at the end
};

}  // namespace smt::runtime::dispatch
