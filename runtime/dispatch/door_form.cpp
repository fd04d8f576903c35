#include "runtime/dispatch/door_form.h"

#include <algorithm>
#include <cstring>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

CUlaunchConfig config_of(Work& work, CUstream stream) {
    CUlaunchConfig config{};
    config.gridDimX = work.grid[0];
    config.gridDimY = work.grid[1];
    config.gridDimZ = work.grid[2];
    config.blockDimX = work.block[0];
    config.blockDimY = work.block[1];
    config.blockDimZ = work.block[2];
    config.sharedMemBytes = work.shared_bytes;
    config.hStream = stream;
    config.attrs = work.attributes.data();
    config.numAttrs = static_cast<unsigned>(work.attributes.size());
    return config;
}

constexpr uint64_t kRefusedPs = 2000;

}  // namespace

DoorForm::DoorForm(const Parts& parts)
    : LaunchForm(parts), doors_(parts.dispatcher.supplies().door_memory()) {}

bool DoorForm::suits(const Work& work) const {
    return work.total <= smt::kMostDoorUnits && work.unit != 0 && work.total % work.unit == 0;
}

CUresult DoorForm::prepare(const Work&, bool idle, bool* anew) {
    return doors_.prepare(parts_.detour.where(), parts_.dispatcher.supplies().control(), idle, anew);
}

// Its next `blocks` (0: all that are left).
CUresult DoorForm::launch(Work& work, uint64_t blocks) {
    const uint64_t wanted = blocks ? (blocks + work.unit - 1) / work.unit * work.unit : work.left();
    work.covered = static_cast<uint32_t>(std::min(wanted, work.left()));
    const auto unit_at = [&](uint64_t block) { return static_cast<uint32_t>(block / work.unit); };
    // A block that waits for others finds the earlier ones admitted. Later ones it can wait for only where
    // all run at once: then all are admitted, or none.
    const uint64_t places = uint64_t{work.fits} * multiprocessors_of(parts_.tenant, parts_.dispatcher);
    const DoorPace pace =
        door_pace(work.total, work.unit, places, work.queued().block_ps(), work.function->waits);
    const smt::DoorLaunch door = doors_.next_run(unit_at(work.done), unit_at(work.done + work.covered), pace,
                                                 !work.endures, &work.run);
    work.early = door.step.early;
    work.tickets = {};
    work.ctas = work.fits;
    parts_.learner.begin(work);
    work.parameters.resize(work.function->launch_offset + sizeof door);
    std::memcpy(work.parameters.data() + work.function->launch_offset, &door, sizeof door);
    size_t bytes = work.parameters.size();
    void* whole[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, work.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    parts_.dispatcher.device().announce(work.entry);
    const device::LaunchesOf watched(launch_of(work));
    const CUresult status =
        parts_.detour.launch(work.function->function, confinable(work), [&](CUstream where) {
            const CUlaunchConfig config = config_of(work, where);
            return parts_.dispatcher.driver().cuLaunchKernelEx(&config, work.function->function, nullptr,
                                                               whole);
        });
    if (status != CUDA_SUCCESS) doors_.take_back();  // the runs in flight are one behind the other
    return status;
}

// Blocks that wait for each other may need all of them to run at once.
bool DoorForm::confinable(const Work& work) const {
    const uint64_t places = uint64_t{work.fits} * parts_.detour.multiprocessors();
    return work.unit <= Detour::kMostCluster && (!work.function->waits || work.total <= places);
}

CUresult DoorForm::run(Work& work, uint64_t blocks) {
    work.endures = false;
    SMT_TRY(launch(work, blocks));
    return report(work, work);
}

// A CTA that is refused costs the GPU about kRefusedPs, and one that asks some hundred ns of its own time.
bool DoorForm::worth_stopping(const Work& work) const {
    const uint64_t block_ps = work.queued().block_ps();
    if (block_ps == 0 || work.done != 0 || work.function->waits) return true;
    const double saved = static_cast<double>(work.left()) *
                         (static_cast<double>(block_ps) - static_cast<double>(kRefusedPs)) / 1e3;
    return saved > schedule::ns_of(parts_.dispatcher.policy().least_saved);
}

CUresult DoorForm::stop(bool /*inside*/) { return doors_.stop(parts_.dispatcher.supplies().control()); }

CUresult DoorForm::report(const Work& first, const Work& last) {
    return doors_.report(parts_.detour.where(), first.run, last.run, parts_.markers.words().frontiers.data());
}

CUresult DoorForm::sample(const Work& work) {
    if (work.endures) return CUDA_SUCCESS;
    return doors_.report(parts_.dispatcher.device().errands(), work.run, work.run,
                         &parts_.markers.words().frontier);
}

CUresult DoorForm::collect(const Work& first) {
    first_ = first.run;
    return CUDA_SUCCESS;
}

void DoorForm::settle(Work& work) { work.settle_door(parts_.markers.words().frontiers[work.run - first_]); }

}  // namespace smt::runtime::dispatch
