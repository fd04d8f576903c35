#include "runtime/dispatch/side_by_side.h"

namespace smt::runtime::dispatch {

using What = Pairing::Want::What;

namespace {

// Of a run: until its workers have begun, and the last of others that were there have left.
constexpr auto kBegins = CommonTime::kSettles / 2;

}  // namespace

void SideBySide::step(ManagedStream& stream, const schedule::Kernel& kernel) {
    using Seen = schedule::Kernel::State;
    Seat seat{true, stream.flowing(), kernel, nullptr, {}};
    ManagedStream::Front front;
    if (kernel.managed && stream.front(&front)) seat.known = front.known, seat.shape = front.shape;
    const Pairing::Want want = pairing_->see(stream_, seat, stream.now());
    if (kernel.state == Seen::kWaiting) begin(stream, kernel, want);
    else if (kernel.state == Seen::kRunning) disturb(stream, seat, want);
}

void SideBySide::idle(ManagedStream& stream) { pairing_->see(stream_, {}, stream.now()); }

void SideBySide::begin(ManagedStream& stream, const schedule::Kernel& kernel, const Pairing::Want& want) {
    if (kernel.managed && want.what == What::kRest) return;
    if (kernel.managed && want.what == What::kHold) {
        ctas_ = want.ctas;
        filled_ = false;
        if (stream.run(even_table(multiprocessors_, places_, ctas_), 0) == CUDA_SUCCESS) return;
    }
    stream.flow();
}

// What flows goes on if nothing else is wanted; what keeps to CTAs that are not wanted any more stops first.
void SideBySide::disturb(ManagedStream& stream, const Seat& seat, const Pairing::Want& want) {
    if (seat.flows) {
        if (want.what != What::kFlow) stream.stop();
    } else if (want.what != What::kHold || want.ctas != ctas_) {
        if (stream.ready()) stream.halt();
    } else if (!filled_ && stream.now() - seat.kernel.since >= kBegins) {
        filled_ = true;
        stream.fill_up();
    }
}

}  // namespace smt::runtime::dispatch
