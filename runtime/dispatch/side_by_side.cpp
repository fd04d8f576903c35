#include "runtime/dispatch/side_by_side.h"

namespace smt::runtime::dispatch {

using What = Pairing::Want::What;

namespace {

// Time for a run's workers to begin, and for the last workers of earlier work to leave.
constexpr auto kBegins = CommonTime::kSettles / 2;
// Between looks at residents(), each of which takes some tens of microseconds.
constexpr auto kBetweenLooks = std::chrono::milliseconds(1);

}  // namespace

void SideBySide::step(ManagedStream& stream, const schedule::Kernel& kernel) {
    using Seen = schedule::Kernel::State;
    Seat seat{true, stream.passes_through(), false, kernel, nullptr, {}};
    ManagedStream::Front front;
    if (kernel.managed && stream.front(&front)) seat.known = front.known, seat.shape = front.shape;
    seat.complete = kernel.state == Seen::kRunning && !seat.passes_through && all_there(stream, kernel);
    const Pairing::Want want = pairing_->see(stream_, seat, stream.now());
    if (kernel.state == Seen::kWaiting)
        begin(stream, kernel, want);
    else if (kernel.state == Seen::kRunning)
        disturb(stream, seat, want);
}

void SideBySide::idle(ManagedStream& stream) { pairing_->see(stream_, {}, stream.now()); }

void SideBySide::begin(ManagedStream& stream, const schedule::Kernel& kernel, const Pairing::Want& want) {
    if (kernel.managed && want.what == What::kRest) return;
    if (kernel.managed && want.what == What::kHold) {
        ctas_ = want.ctas;
        complete_ = false;
        look_again_ = {};
        if (stream.run(even_table(multiprocessors_, places_, ctas_), 0) == CUDA_SUCCESS) return;
    }
    stream.pass_through();
}

// A stream in pass-through mode continues if that is wanted. A run with other CTAs than wanted stops first.
void SideBySide::disturb(ManagedStream& stream, const Seat& seat, const Pairing::Want& want) {
    if (seat.passes_through) {
        if (want.what != What::kPassThrough) stream.stop();
    } else if (want.what != What::kHold || want.ctas != ctas_) {
        if (stream.ready()) stream.halt();
    }
}

// A worker with a place stays until no ticket is left. If some workers found none, other workers still had
// it: further ones are sent.
bool SideBySide::all_there(ManagedStream& stream, const schedule::Kernel& kernel) {
    const schedule::TimePoint now = stream.now();
    if (complete_ || now - kernel.since < kBegins || now < look_again_) return complete_;
    look_again_ = now + kBetweenLooks;
    complete_ = stream.residents() == static_cast<uint64_t>(ctas_) * places_.size();
    if (!complete_) stream.fill_up();
    return complete_;
}

}  // namespace smt::runtime::dispatch
