#include "runtime/server/handlers/code/launch_entry.h"

#include <algorithm>
#include <iterator>

#include "runtime/server/lane.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

void put_places(Call& call, const dispatch::SmSet& places, journal::Entry& entry) {
    if (call.session.device().properties().keeps_sessions_apart) return;
    std::fill(std::begin(entry.multiprocessors), std::end(entry.multiprocessors), 0);
    for (uint32_t each : places.multiprocessors())
        entry.multiprocessors[each / 64 % journal::kPlaceWords] |= 1ull << each % 64;
}

journal::Entry launch_entry(Call& call, const LoadedKernel& kernel, const protocol::Launch& launch,
                            uint32_t treatment) {
    journal::Entry entry;
    entry.kind = journal::Kind::kLaunch;
    entry.session = call.session.id();
    entry.lane = call.lane.index();
    entry.stream = launch.stream;
    entry.name = kernel.journal_name;
    entry.value = treatment | call.measured << 32;
    entry.text = call.session.journal_name();
    std::copy_n(launch.grid, 3, entry.grid);
    std::copy_n(launch.block, 3, entry.block);
    entry.registers = kernel.registers;
    entry.shared_bytes = kernel.static_shared + launch.shared_bytes;
    if (const auto& places = call.session.dispatched().places) put_places(call, *places, entry);
    return entry;
}

void note_into_graph(Call& call, const LoadedKernel& kernel, const protocol::Launch& launch) {
    const uint32_t treatment =
        kernel.managed.load() ? call.session.code().exceptions()[Exception::kGraph] : kernel.treatment.load();
    journal::Entry entry = launch_entry(call, kernel, launch, treatment);
    entry.kind = journal::Kind::kIntoGraph;
    call.session.journal().write(entry);
}

}  // namespace smt::runtime::server::handlers
