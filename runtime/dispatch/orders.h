// Orders: what a policy wants of a stream, and the next step that brings the stream there.
//
//     wanted             the stream             step
//     wait               is in pass-through     stop it
//                        is in quota mode       halt it
//     run                is stopped             pass through
//                        is in quota mode       lift the quotas
//     run with quotas    is in pass-through     stop it, unless all blocks left have a place
//                        is stopped             run its first launch
//                        is in quota mode       change the quotas
//
// Pass-through mode is faster, but cannot be given quotas. So quotas with a place for all CTAs that the
// kernel takes by itself count as no quotas. When quotas are lifted, a kernel goes on with the CTAs that it
// has in pass-through mode. A long launch that follows a launch with restricting quotas begins in quota mode
// with all CTAs that it takes: it is likely to be restricted, too, and would otherwise have to be stopped as
// a whole.
//
// A launch that waits does so until the policy names its stream: policies name each stream that they see in
// another state than they asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/dispatch/decider.h"
#include "runtime/schedule/policy.h"

namespace smt::runtime::dispatch {

class Orders final : public Decider {
public:
    // `places`: the SMs that the stream may use, of the device's `multiprocessors`.
    Orders(int multiprocessors, std::vector<uint32_t> places)
        : multiprocessors_(multiprocessors), places_(std::move(places)) {}

    // True: the order differs from the last one. Initially everything runs.
    bool give(const schedule::Assignment& assignment);
    Step next(const View& view) override { return next(view.kernel, view.passes_through); }
    Step next(const schedule::Kernel& kernel, bool passes_through);
    static Step to_rest(const schedule::Kernel& kernel, bool passes_through);  // whatever the order is
    void done(const Step& step) override;
    bool runs_freely() const {  // whatever is launched
        return action_ == schedule::Assignment::Action::kRun && quota_.empty() && slice_ == 0;
    }
    // CTAs on each of all SMs that it runs with; 0: not the same on each.
    int held_evenly() const;
    bool held() const { return !in_force_.empty(); }  // it has run with quotas

private:
    bool restricted(const schedule::Kernel& kernel);
    bool stays_held(const schedule::Kernel& kernel) const;
    bool all_placed(const schedule::Kernel& kernel) const;
    void tabulate(const schedule::Kernel& kernel);
    uint64_t places(const QuotaTable& table) const;  // on the SMs that the stream may use
    QuotaTable levelled(const schedule::Kernel& kernel) const;

    int multiprocessors_;
    std::vector<uint32_t> places_;
    bool given_ = false;
    schedule::Assignment::Action action_ = schedule::Assignment::Action::kRun;
    schedule::Quota quota_;
    uint64_t slice_ = 0;
    QuotaTable table_;                         // the order, by SM
    QuotaTable followed_;                      // the order when it was last carried out
    QuotaTable in_force_;                      // with which the stream runs
    std::optional<uint64_t> last_restricted_;  // last launch with a restricting table
};

}  // namespace smt::runtime::dispatch
