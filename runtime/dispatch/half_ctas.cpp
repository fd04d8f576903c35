#include "runtime/dispatch/half_ctas.h"

#include <fmt/format.h>

namespace smt::runtime::dispatch {

void HalfCtas::step(ManagedStream& stream, const schedule::Kernel& kernel) {
    if (kernel.state != schedule::Kernel::State::kWaiting) return;
    ManagedStream::Front front;
    if (kernel.managed && stream.front(&front) && front.ctas_per_sm > 0) {
        ++launches_;
        if (stream.run(even_table(multiprocessors_, places_, half(front.ctas_per_sm)), 0) == CUDA_SUCCESS)
            return;
    }
    stream.pass_through();
}

std::string HalfCtas::summary() const {
    return fmt::format("kept to half of the places in {} runs", launches_);
}

}  // namespace smt::runtime::dispatch
