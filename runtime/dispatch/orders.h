// What a policy wants of a stream, and the next step that brings the stream there.
//
//     wanted             the stream          step
//     wait               passes_through               stop it
//                        runs with quotas    halt it
//     run                is stopped          let it flow
//                        runs with quotas    lift the quotas
//     run with quotas    passes_through               stop it, unless the rest of it has places enough; it goes on with them
//                        is stopped          run its first launch
//                        runs with quotas    change them
//
// A stream that passes_through is faster, and cannot be given quotas. So quotas in which all CTAs that it takes by itself have a place are none. Where they are
// lifted, a kernel goes on with the CTAs that it has when it passes_through. And a long launch behind one whose quotas left it less than it takes begins with a table of
// all that it takes, for it will be given less, too, and would be stopped as a whole for that. A
// launch that waits does so until its stream is named: policies name what they see in another state than they asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/dispatch/control_block.h"
#include "runtime/schedule/policy.h"

namespace smt::runtime::dispatch {

class Orders {
public:
    enum class Step { kNone, kStop, kHalt, kPassThrough, kRun, kChange };

    // `places`: the multiprocessors that the stream may use, of so many.
    Orders(int multiprocessors, std::vector<uint32_t> places) : multiprocessors_(multiprocessors), places_(std::move(places)) {}

    // True: another order than before; at first everything runs.
    bool give(const schedule::Assignment& assignment);
    Step next(const schedule::Kernel& kernel, bool passes_through);
    static Step to_rest(const schedule::Kernel& kernel, bool passes_through);   // whatever the order is
    void done(Step step);   // it was carried out

    // Of the steps run and change.
    const QuotaTable& quotas() const { return quotas_; }
    bool held() const { return !in_force_.empty(); }   // it has run with quotas
    uint64_t slice() const { return slice_; }
    uint32_t growth() const { return growth_; }   // further workers that the quotas have room for, about

private:
    bool restricted(const schedule::Kernel& kernel);
    bool stays_held(const schedule::Kernel& kernel) const;
    bool all_placed(const schedule::Kernel& kernel) const;
    void tabulate(const schedule::Kernel& kernel);
    uint64_t places(const QuotaTable& table) const;   // where the stream may run
    QuotaTable levelled(const schedule::Kernel& kernel) const;

    int multiprocessors_;
    std::vector<uint32_t> places_;
    bool given_ = false;
    schedule::Assignment::Action action_ = schedule::Assignment::Action::kRun;
    schedule::Quota quota_;
    uint64_t slice_ = 0;
    QuotaTable table_;         // what the order says, for each multiprocessor
    QuotaTable followed_;      // what it said when that was last done
    QuotaTable quotas_;        // of the next step
    QuotaTable in_force_;      // with which it runs
    uint32_t growth_ = 0;
    std::optional<uint64_t> last_restricted_;   // the last launch that had a table with less than it takes by itself
};

}  // namespace smt::runtime::dispatch
