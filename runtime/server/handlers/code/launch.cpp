// Kernel launches: the hot path of the server. No lock and no allocation, unless the kernel prints or awaits
// its managed form, the stream captures, the launch has attributes, its tenant is preemptible, or launch
// times are enabled.
#include <algorithm>
#include <vector>

#include "rewriter/device/smt_worker.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/fatal.h"
#include "runtime/server/handlers/code/fencing.h"
#include "runtime/server/handlers/code/late_form.h"
#include "runtime/server/handlers/code/launch_attributes.h"
#include "runtime/server/handlers/code/launch_constants.h"
#include "runtime/server/handlers/code/launch_entry.h"
#include "runtime/server/handlers/code/launch_key.h"
#include "runtime/server/handlers/code/launch_parameters.h"
#include "runtime/server/handlers/code/measured_launch.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/lane.h"
#include "runtime/server/launch_ranges.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/printf.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

namespace {

struct Request {
    protocol::Launch launch;
    CUlaunchAttribute* attributes;
    char* parameters;                           // in the record; the driver copies them
    uint32_t treatment = 0;                     // in the journal's names
    dispatch::ManagedFunction* form = nullptr;  // the kernel's, as this launch has it
};

bool read(Call& call, Request& request) {
    request.launch = call.in.scalar<protocol::Launch>();
    auto* attributes = call.in.take(uint64_t{request.launch.attribute_count} * sizeof(CUlaunchAttribute));
    auto* parameters = call.in.take(request.launch.parameter_bytes);
    request.attributes = reinterpret_cast<CUlaunchAttribute*>(const_cast<char*>(attributes));
    request.parameters = const_cast<char*>(parameters);
    return call.in.good();
}

// The launch's attributes as the driver takes them.
CUresult driver_attributes(Call& call, const Request& request, std::vector<CUlaunchAttribute>* attributes) {
    const uint32_t count = request.launch.attribute_count;
    SMT_TRY(check_launch_attributes(request.attributes, count));
    attributes->assign(request.attributes, request.attributes + count);
    for (CUlaunchAttribute& each : *attributes) {
        if (each.id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            each.value.priority = call.session.streams().driver_priority(each.value.priority);
    }
    if (request.launch.flags & protocol::kLaunchCooperative) {
        CUlaunchAttribute& cooperative = attributes->emplace_back();
        cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        cooperative.value.cooperative = 1;
    }
    return CUDA_SUCCESS;
}

CUresult launch_extended(Call& call, const LoadedKernel& kernel, const Request& request, CUstream stream,
                         void** each, void** whole) {
    const protocol::Launch& launch = request.launch;
    std::vector<CUlaunchAttribute> attributes;
    SMT_TRY(driver_attributes(call, request, &attributes));
    CUlaunchConfig config{};
    config.gridDimX = launch.grid[0];
    config.gridDimY = launch.grid[1];
    config.gridDimZ = launch.grid[2];
    config.blockDimX = launch.block[0];
    config.blockDimY = launch.block[1];
    config.blockDimZ = launch.block[2];
    config.sharedMemBytes = launch.shared_bytes;
    config.hStream = stream;
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    return call.driver.cuLaunchKernelEx(&config, kernel.function, each, whole);
}

// The parameters are given as `each` (one pointer per parameter), as `whole` (a buffer), or not at all.
CUresult launch_with(Call& call, const LoadedKernel& kernel, const Request& request, CUstream stream,
                     void** each, void** whole) {
    const protocol::Launch& launch = request.launch;
    if (launch.attribute_count || launch.flags) [[unlikely]]
        return launch_extended(call, kernel, request, stream, each, whole);
    return call.driver.cuLaunchKernel(kernel.function, launch.grid[0], launch.grid[1], launch.grid[2],
                                      launch.block[0], launch.block[1], launch.block[2], launch.shared_bytes,
                                      stream, each, whole);
}

bool cooperative(const Request& request) {
    if (request.launch.flags & protocol::kLaunchCooperative) return true;
    for (uint32_t i = 0; i < request.launch.attribute_count; ++i) {
        const CUlaunchAttribute& attribute = request.attributes[i];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && attribute.value.cooperative) return true;
    }
    return false;
}

// The driver documents the parameter buffer only for kernels that are not cooperative.
CUresult launch_now(Call& call, const LoadedKernel& kernel, const Request& request, CUstream stream) {
    if (cooperative(request)) [[unlikely]]
        return launch_with(call, kernel, request, stream, ParameterList(kernel, request.parameters).data(),
                           nullptr);
    return launch_with(call, kernel, request, stream, nullptr,
                       ParameterBuffer(kernel, request.parameters).data());
}

// A graph stores the parameters one by one, so they are passed in that form.
CUresult launch_into_graph(Call& call, const LoadedKernel& kernel, const Request& request, CUstream stream) {
    if (kernel.prints) call.session.code().graphs_print().store(true);
    CUresult status =
        launch_with(call, kernel, request, stream, ParameterList(kernel, request.parameters).data(), nullptr);
    if (status == CUDA_SUCCESS) note_into_graph(call, kernel, request.launch);
    return status;
}

// Whether the hardware can run the grid. The driver reports the error of one that it cannot run.
bool proper(const protocol::Launch& launch) {
    constexpr uint32_t kWidest = 0x7fffffff, kHighest = 0xffff, kMostThreads = 1024;
    const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
    return launch.grid[0] - 1 < kWidest && launch.grid[1] - 1 < kHighest && launch.grid[2] - 1 < kHighest &&
           threads != 0 && threads <= kMostThreads;
}

// Whether the launch has attributes that the managed form cannot provide. Programmatic stream serialization
// is none of them: it permits an early start but does not require it, and a kernel that waits for its
// predecessor's end still does so.
bool has_demands(const Request& request) {
    if (request.launch.flags) return true;
    for (uint32_t i = 0; i < request.launch.attribute_count; ++i) {
        if (request.attributes[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) return true;
    }
    return false;
}

// Whether all its blocks have a place at once, on the whole device. `launch`: a proper one.
bool runs_at_once(Call& call, const LoadedKernel& kernel, const protocol::Launch& launch) {
    const uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    uint32_t fits = kernel.at_door.fitting(threads, launch.shared_bytes);
    int found = 0;
    if (!fits &&
        call.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &found, kernel.function, static_cast<int>(threads), launch.shared_bytes) == CUDA_SUCCESS) {
        fits = static_cast<uint32_t>(found);
        kernel.at_door.set_fitting(threads, launch.shared_bytes, fits);
    }
    const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    return blocks <=
           uint64_t{fits} * static_cast<uint64_t>(call.session.device().properties().multiprocessors);
}

// Why a launch of a kernel with a managed form does not use that form; kCount: it does. A kernel that prints
// runs unmanaged, because the server must know when it has completed. Blocks that run at once may wait for
// later ones, as in a barrier over the grid: after a stop, or under quotas, some of them would not have
// begun.
Exception exception(Call& call, const LoadedKernel& kernel, const Request& request) {
    if (kernel.prints) return Exception::kPrints;
    if (has_demands(request)) return Exception::kAttributes;
    if (!suits(request.form->reuse, request.launch.block[0])) return Exception::kWidth;
    if (!proper(request.launch)) return Exception::kGrid;
    return request.form->waits && runs_at_once(call, kernel, request.launch) ? Exception::kWaits
                                                                             : Exception::kCount;
}

// A launch with no more blocks than the device has SMs starts all of them at once, so there is no point to
// preempt it. It runs in its original form, which costs less, unless its tenant is preemptible or the journal
// records where workers ran.
bool worth_managing(Call& call, const protocol::Launch& launch) {
    const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    return blocks > static_cast<uint64_t>(call.session.device().properties().multiprocessors) ||
           call.session.dispatched().preemptible.load(std::memory_order_relaxed) ||
           call.session.server().dispatcher().maps();
}

// Whether the launch of a kernel with a door is one to stop, for a policy or because it may not end.
// Otherwise it needs no bookkeeping.
bool stops_at_door(Call& call, const Request& request) {
    const dispatch::Tenant& tenant = call.session.dispatched();
    if (!tenant.preemptible.load(std::memory_order_relaxed) && !tenant.limited()) return false;
    return !cooperative(request) && proper(request.launch);
}

bool is_pointer(Call& call, uint64_t word) {
    return call.session.memory().in_device_range(word, 1) || call.session.arena().contains(word, 1);
}

// Whether a stop may end blocks of the launch before their end.
bool may_begin_anew(Call& call, const LoadedKernel& kernel, const dispatch::ManagedFunction& form,
                    const Request& request) {
    return form.checked &&
           repeats(*kernel.checked, request.parameters, kernel.parameter_bytes, call.session.memory());
}

CUresult launch_work(Call& call, const LoadedKernel& kernel, dispatch::ManagedFunction& form,
                     const Request& request, Stream& stream, std::vector<CUlaunchAttribute> attributes) {
    const protocol::Launch& launch = request.launch;
    dispatch::ManagedStream* managed = nullptr;
    SMT_TRY(call.session.streams().manage(stream, &managed));
    dispatch::Work work;
    work.function = &form;
    work.unit = cluster_blocks(attributes.data(), attributes.size(), form.cluster);
    work.attributes = std::move(attributes);
    work.entry = launch_entry(call, kernel, launch, request.treatment);
    std::copy_n(launch.grid, 3, work.grid);
    std::copy_n(launch.block, 3, work.block);
    work.shared_bytes = launch.shared_bytes;
    work.total = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    if (call.session.dispatched().preemptible.load(std::memory_order_relaxed))  // else nothing is predicted
        work.key = launch_key(launch, kernel.parameters, request.parameters, kernel.parameter_bytes,
                              [&](uint64_t word) { return is_pointer(call, word); });
    work.repeats = may_begin_anew(call, kernel, form, request);
    work.parameters.reserve(form.launch_offset + std::max(sizeof(smt::Launch), sizeof(smt::DoorLaunch)));
    work.parameters.assign(request.parameters, request.parameters + kernel.parameter_bytes);
    const journal::Entry entry = work.entry;
    call.lane.launches(stream, kernel.journal_name);
    CUresult status = managed->launch(std::move(work));
    if (status != CUDA_SUCCESS) return status;
    if (!call.session.device().properties().keeps_sessions_apart) call.session.journal().write(entry);
    call.session.count_launch();
    return CUDA_SUCCESS;
}

CUresult launch_managed(Call& call, const LoadedKernel& kernel, const Request& request, Stream& stream) {
    return launch_work(call, kernel, *request.form, request, stream, {});
}

CUresult launch_at_door(Call& call, const LoadedKernel& kernel, const Request& request, Stream& stream) {
    std::vector<CUlaunchAttribute> attributes;
    SMT_TRY(driver_attributes(call, request, &attributes));
    return launch_work(call, kernel, kernel.at_door, request, stream, std::move(attributes));
}

// Notes the launch with the dispatcher, because a less urgent tenant waits for its end, or it is watched.
CUresult tell_dispatcher(Call& call, const LoadedKernel& kernel, Stream& stream) {
    dispatch::ManagedStream* managed = nullptr;
    CUresult status = call.session.streams().manage(stream, &managed);
    return status == CUDA_SUCCESS ? managed->note_other(kernel.journal_name) : status;
}

// Launches the kernel and writes the journal entry. `places`: the SMs, if not the tenant's own.
CUresult launch_noted(Call& call, const LoadedKernel& kernel, const Request& request, CUstream stream,
                      const dispatch::SmSet* places) {
    journal::Entry entry = launch_entry(call, kernel, request.launch, request.treatment);
    if (places) put_places(call, *places, entry);
    const bool announced = call.session.device().announce(entry);
    LaunchTimes& times = call.session.code().times();
    CUevent start = !announced && LaunchTimes::wanted() ? times.before(stream) : nullptr;
    CUresult status = CUDA_SUCCESS;
    {
        const device::LaunchesOf watched(call.session.launch_of(kernel.journal_name));
        status = launch_now(call, kernel, request, stream);
    }
    const uint64_t sequence = announced || status ? 0 : call.session.journal().write(entry);
    if (start) [[unlikely]]
        times.after(start, stream, call.session.journal(), sequence);
    if (status == CUDA_SUCCESS) call.session.count_launch();
    return status;
}

// The dispatcher does not count a printing launch while it waits for the printing turn, since the turn may
// depend on the end of other tenants' work.
CUresult launch_printing(Call& call, const LoadedKernel& kernel, const Request& request, Stream& stream) {
    CUresult status = call.session.device_printf().launch(call.session, stream.handle, [&] {
        call.session.code().output_expected().store(true);
        return launch_noted(call, kernel, request, stream.handle, nullptr);
    });
    if (status == CUDA_SUCCESS && (call.session.dispatched().preemptor.load(std::memory_order_relaxed) ||
                                   call.session.server().dispatcher().watches()))
        status = behind_launch(tell_dispatcher(call, kernel, stream));
    return status;
}

// A cooperative launch that needs more SMs than its tenant has runs on all SMs.
CUresult launch_everywhere(Call& call, const LoadedKernel& kernel, const Request& request, Stream& stream) {
    dispatch::ManagedStream* managed = nullptr;
    CUstream away = nullptr;
    CUresult status = call.session.streams().manage(stream, &managed);
    if (status == CUDA_SUCCESS) status = managed->leave(nullptr, &away);
    if (status == CUDA_SUCCESS) status = launch_noted(call, kernel, request, away, nullptr);
    if (status != CUDA_SUCCESS) return status;
    call.session.note_wide_launch(kernel.name);
    return behind_launch(managed->come_back(away));
}

CUresult launch_unmanaged(Call& call, const LoadedKernel& kernel, const Request& request, Stream& stream) {
    const protocol::Launch& launch = request.launch;
    const dispatch::UnmanagedLaunch what{kernel.journal_name,
                                         kernel.journal_name,
                                         request.treatment,
                                         kernel.function,
                                         uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2],
                                         launch.block[0] * launch.block[1] * launch.block[2],
                                         launch.shared_bytes};
    dispatch::UnmanagedPass pass;
    SMT_TRY(call.session.streams().enter(stream, call.lane, what, &pass));
    call.lane.launches(stream, kernel.journal_name);  // not before: while it is held back it is no launch
    if (kernel.prints) [[unlikely]] {
        pass.drop();
        return launch_printing(call, kernel, request, stream);
    }
    CUresult status = launch_noted(call, kernel, request, pass.where(stream.handle), pass.places());
    if (status != CUDA_SUCCESS && pass.places()) {
        SMT_TRY(pass.stay(status));
        status = launch_noted(call, kernel, request, stream.handle, nullptr);
    }
    if (status == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE && call.session.dispatched().places)
        status = launch_everywhere(call, kernel, request, stream);
    return status == CUDA_SUCCESS ? behind_launch(pass.launched()) : status;
}

// With counters enabled the kernel runs in its original form.
CUresult launch_measured(Call& call, const LoadedKernel& kernel, const Request& request, Stream& stream) {
    Measuring& measuring = *call.session.server().measuring();
    const bool managed = measuring.what() != Measuring::What::kCounters && request.form &&
                         exception(call, kernel, request) == Exception::kCount &&
                         worth_managing(call, request.launch);
    const Measuring::Launch about =
        describe_launch(call, kernel, request.form, request.launch, request.parameters, managed);
    CUresult status = CUDA_ERROR_NOT_SUPPORTED;
    Measuring::Around around(&measuring, about);
    call.measured = around.number();
    if (managed) status = launch_managed(call, kernel, request, stream);
    if (status == CUDA_ERROR_NOT_SUPPORTED) status = launch_unmanaged(call, kernel, request, stream);
    if (status == CUDA_SUCCESS) around.launched();
    return status;
}

}  // namespace

CUresult handle_launch(Call& call) {
    Request request;
    if (!read(call, request)) return CUDA_ERROR_INVALID_VALUE;
    KernelUse kernel(call.session.code(), request.launch.function);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    if (request.launch.parameter_bytes < kernel->parameter_bytes ||
        !may_launch_with(call, *kernel, request.parameters))
        return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(may_launch_fenced(call, *kernel));
    StreamPointer target;
    SMT_TRY(call.launch_stream(request.launch.stream, &target));
    CUstream stream = target->handle;
    const bool captures = call.session.streams().capturing(stream);
    if (!captures) SMT_TRY(call.session.stand_back());
    if (!captures && kernel->looked.load(std::memory_order_relaxed) != LoadedKernel::kSettled) [[unlikely]]
        look_for_form(call, *kernel);
    request.form = kernel->managed.load(std::memory_order_acquire);
    request.treatment =
        request.form ? kernel->managed_treatment : kernel->treatment.load(std::memory_order_relaxed);
    if (call.session.server().measuring() && !captures) [[unlikely]]
        return launch_measured(call, *kernel, request, *target);
    Exception why = Exception::kCount;
    if (request.form && !captures) why = exception(call, *kernel, request);
    if ((!request.form || why == Exception::kWaits) && kernel->at_door.function && !captures &&
        stops_at_door(call, request)) {
        if (request.form) request.treatment = call.session.code().exceptions()[Exception::kWaitsAtDoor];
        CUresult status = launch_at_door(call, *kernel, request, *target);
        if (status != CUDA_ERROR_NOT_SUPPORTED) return status;
    }
    if (request.form && !captures) {
        if (why == Exception::kCount && !worth_managing(call, request.launch)) why = Exception::kSmall;
        if (why == Exception::kCount) {
            CUresult status = launch_managed(call, *kernel, request, *target);
            if (status != CUDA_ERROR_NOT_SUPPORTED) return status;
            why = Exception::kNoRoom;
        }
        request.treatment = call.session.code().exceptions()[why];
    }
    if (captures) [[unlikely]] {
        SMT_TRY(target->guard());
        return launch_into_graph(call, *kernel, request, stream);
    }
    return launch_unmanaged(call, *kernel, request, *target);
}

}  // namespace smt::runtime::server::handlers
