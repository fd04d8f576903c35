// Experiment: measures a stream's managed launches beside those of another program. Does to the stream what
// the plan of all streams wants (pairing.h).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dispatch/experiment.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/dispatch/pairing.h"

namespace smt::runtime::dispatch {

class SideBySide final : public Experiment {
public:
    // `places`: the SMs that the stream may use.
    SideBySide(std::shared_ptr<Pairing> pairing, uint64_t stream, int multiprocessors,
               std::vector<uint32_t> places)
        : pairing_(std::move(pairing)),
          stream_(stream),
          multiprocessors_(multiprocessors),
          places_(std::move(places)) {}
    ~SideBySide() override { pairing_->leave(stream_); }

    void step(ManagedStream& stream, const schedule::Kernel& kernel) override;
    void idle(ManagedStream& stream) override;
    bool samples() const override { return pairing_->counts(stream_); }
    std::string summary() const override { return pairing_->summary(); }

private:
    // The launch waits.
    void begin(ManagedStream& stream, const schedule::Kernel& kernel, const Pairing::Want& want);
    // The launch runs.
    void disturb(ManagedStream& stream, const Seat& seat, const Pairing::Want& want);

    const std::shared_ptr<Pairing> pairing_;
    const uint64_t stream_;
    const int multiprocessors_;
    const std::vector<uint32_t> places_;
    bool all_there(ManagedStream& stream, const schedule::Kernel& kernel);

    int ctas_ = 0;                      // CTAs per SM that it runs with
    bool complete_ = false;             // all of them were seen to have a place
    schedule::TimePoint look_again_{};  // no look at residents before then
};

}  // namespace smt::runtime::dispatch
