#include "runtime/device/simulated/driver/backend.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string_view>

#include "rewriter/ptx/parser.h"
#include "runtime/device/simulated/driver/facts.h"

namespace smt::runtime::device::simulated {

namespace {

thread_local std::optional<journal::Entry> announced;
thread_local ManagedMemory managed_memory;
thread_local VariableMemory variable_memory;

// What a session that a fault has ended may still do: clean up.
bool cleans_up(const char* name) {
    for (const char* word : {"Destroy", "Free", "Release", "Unmap", "Unload", "Unregister", "EndCapture",
                             "SetCurrent", "IsCapturing"}) {
        if (std::strstr(name, word)) return true;
    }
    return false;
}

// What still works in a process whose context is lost: what needs none.
bool needs_no_context(std::string_view name) {
    return name == "cuInit" || name == "cuCtxSetCurrent" || name == "cuThreadExchangeStreamCaptureMode" ||
           name.starts_with("cuDevice");
}

// Of the server's calls those that load code, as they wait on an H200.
bool loads_module(std::string_view name) {
    return name == "cuModuleLoadDataEx" || name == "cuLibraryGetModule";
}
bool loads_function(std::string_view name) {
    return name == "cuModuleGetFunction" || name == "cuKernelGetFunction";
}

// Asking whether work is over is no sign that more will come.
bool asks_only(const char* name) { return std::strstr(name, "Query") != nullptr; }

const PtxFunction& ptx(const hosted::Function& function) { return static_cast<const PtxFunction&>(function); }

}  // namespace

SimulatedBackend::SimulatedBackend(const Engine::Settings& settings, uint64_t memory_bytes,
                                   const std::string& streams, int gpu)
    : memory_bytes_(memory_bytes),
      gpu_(gpu),
      name_(fmt::format("smt simulated H200 ({} SMs)", settings.machine.multiprocessors)),
      engine_(settings,
              [this](const hosted::Launch& launch, std::shared_ptr<Tenant> tenant,
                     std::function<void(const GridResult&)> over) {
                  return make_kernel_grid(surroundings_, launch, std::move(tenant), std::move(over));
              }),
      surroundings_{memory_, engine_.journal(), engine_.machine()} {
    surroundings_.step_limit = settings.machine.step_limit;
    surroundings_.streams = Streams(streams);
    if (settings.one_context) surroundings_.lose_context = [this](CUresult fault) { engine_.lose(fault); };
}

void SimulatedBackend::announce(const journal::Entry& entry) {
    announced = entry;
    announced->virtual_time = 1;
    announced->time_ns = engine_.now_ns();
}

void SimulatedBackend::place_managed(const ManagedMemory& memory) { managed_memory = memory; }
void SimulatedBackend::place_variables(const VariableMemory& memory) { variable_memory = memory; }

CUresult SimulatedBackend::asked(const char* name, const char*, va_list) {
    if (const CUresult lost = engine_.lost(); lost != CUDA_SUCCESS && !needs_no_context(name)) return lost;
    Tenant* tenant = caller().tenant.get();
    if (!tenant) return CUDA_SUCCESS;
    if (!asks_only(name)) engine_.touch(*tenant);
    if (loads_module(name) || loads_function(name)) engine_.begin_load(loads_module(name));
    const int fault = tenant->fault.load();
    return fault != CUDA_SUCCESS && !cleans_up(name) ? static_cast<CUresult>(fault) : CUDA_SUCCESS;
}

int SimulatedBackend::attribute(CUdevice_attribute which) const {
    return device_attribute(which,
                            const_cast<SimulatedBackend*>(this)->engine_.machine().config().multiprocessors);
}

void SimulatedBackend::opened(const std::shared_ptr<hosted::Stream>& stream) {
    engine_.opened(std::static_pointer_cast<SimulatedStream>(stream));
}

void SimulatedBackend::submitted(hosted::Stream& stream) {
    engine_.submitted(static_cast<SimulatedStream&>(stream));
}

CUresult SimulatedBackend::load(const void* image, std::unique_ptr<hosted::Image>* loaded, std::string* log) {
    const CUresult status = load_image(image, memory_, managed_memory, variable_memory, loaded, log);
    if (status != CUDA_SUCCESS) tell("an image cannot be loaded: " + *log);
    return status;
}

CUresult SimulatedBackend::link(CUjitInputType, const void* data, size_t bytes, std::string* image) {
    auto found = find_ptx(data, bytes);
    if (auto* refusal = std::get_if<Refusal>(&found)) {
        tell("an input cannot be linked: " + refusal->why);
        return refusal->error;
    }
    // What comes out is an image that programs trust: no bytes of theirs that are something else.
    for (const std::string& part : std::get<PtxTexts>(found).parts) {
        auto parsed = ptx::parse(part);
        if (auto* diagnostic = std::get_if<ptx::Diagnostic>(&parsed)) {
            tell("an input cannot be linked: " + to_string(*diagnostic));
            return CUDA_ERROR_INVALID_PTX;
        }
        *image += part + "\n";
    }
    return CUDA_SUCCESS;
}

CUresult SimulatedBackend::prepare(hosted::Function& function) {
    std::string log;
    const CUresult status = simulated::prepare(static_cast<PtxFunction&>(function), &log);
    if (status != CUDA_SUCCESS) tell("cannot run " + log);
    return status;
}

int SimulatedBackend::attribute(const hosted::Function& function, CUfunction_attribute which) const {
    return function_attribute(ptx(function), which);
}

CUresult SimulatedBackend::check(hosted::Launch& launch) {
    const CUresult status =
        check_launch(launch, static_cast<uint32_t>(engine_.machine().config().multiprocessors));
    if (status == CUDA_SUCCESS) static_cast<LaunchCode*>(launch.code.get())->entry = announced;
    announced.reset();
    return status;
}

int SimulatedBackend::resident_blocks(const hosted::Function& function, int threads,
                                      size_t dynamic_shared) const {
    return static_cast<int>(
        blocks_per_multiprocessor(ptx(function).needs(static_cast<uint32_t>(threads), dynamic_shared)));
}

size_t SimulatedBackend::dynamic_shared(const hosted::Function& function, int threads, int blocks) const {
    return dynamic_shared_for(ptx(function).needs(static_cast<uint32_t>(threads), 0),
                              static_cast<uint32_t>(blocks));
}

// Hints are taken as such; what would change the meaning of a launch is refused.
CUresult SimulatedBackend::launch_attribute(const CUlaunchAttribute& attribute, hosted::Launch* launch) {
    switch (attribute.id) {
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            launch->has_priority = true;
            launch->priority = attribute.value.priority;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            launch->cooperative = attribute.value.cooperative != 0;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
            const auto& size = attribute.value.clusterDim;
            return size.x <= 1 && size.y <= 1 && size.z <= 1 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
        }
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
            return CUDA_SUCCESS;  // it allows, it does not demand
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

}  // namespace smt::runtime::device::simulated
