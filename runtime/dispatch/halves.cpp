#include "runtime/dispatch/halves.h"

#include <fmt/format.h>

namespace smt::runtime::dispatch {

void Halves::step(ManagedStream& stream, const schedule::Kernel& kernel) {
    if (kernel.state != schedule::Kernel::State::kWaiting) return;
    ManagedStream::Front front;
    if (kernel.managed && stream.front(&front) && front.ctas_per_sm > 0) {
        QuotaTable table(static_cast<size_t>(multiprocessors_), 0);
        for (const uint32_t each : places_) table[each] = static_cast<uint8_t>(half(front.ctas_per_sm));
        ++launches_;
        if (stream.run(table, 0) == CUDA_SUCCESS) return;
    }
    stream.flow();
}

std::string Halves::summary() const { return fmt::format("kept to half of the places in {} runs", launches_); }

}  // namespace smt::runtime::dispatch
