#include "runtime/dispatch/side_by_side.h"

namespace smt::runtime::dispatch {

using What = Pairing::Want::What;

void SideBySide::step(ManagedStream& stream, const schedule::Kernel& kernel) {
    using Seen = schedule::Kernel::State;
    Seat seat{true, stream.flowing(), kernel, nullptr, {}};
    ManagedStream::Front front;
    if (kernel.managed && stream.front(&front)) seat.known = front.known, seat.shape = front.shape;
    const Pairing::Want want = pairing_->see(stream_, seat, stream.now());
    if (kernel.state == Seen::kWaiting) begin(stream, kernel, want);
    else if (kernel.state == Seen::kRunning) disturb(stream, seat.flows, want);
}

void SideBySide::idle(ManagedStream& stream) { pairing_->see(stream_, {}, stream.now()); }

void SideBySide::begin(ManagedStream& stream, const schedule::Kernel& kernel, const Pairing::Want& want) {
    if (kernel.managed && want.what == What::kRest) return;
    if (kernel.managed && want.what == What::kHold) {
        ctas_ = want.ctas;
        if (stream.run(even_table(multiprocessors_, places_, ctas_), 0) == CUDA_SUCCESS) return;
    }
    stream.flow();
}

// What flows goes on if nothing else is wanted; what keeps to CTAs that are not wanted any more stops first.
void SideBySide::disturb(ManagedStream& stream, bool flows, const Pairing::Want& want) {
    if (flows && want.what != What::kFlow) stream.stop();
    if (!flows && (want.what != What::kHold || want.ctas != ctas_) && stream.ready()) stream.halt();
}

}  // namespace smt::runtime::dispatch
