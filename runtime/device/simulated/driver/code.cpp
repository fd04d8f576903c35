#include "runtime/device/simulated/driver/code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "rewriter/ptx/parser.h"

namespace smt::runtime::device::simulated {

namespace {

constexpr int kPtxVersion = 90;
constexpr int kMostPtxMajor = kPtxVersion / 10;

std::string located(int line, const std::string& message) {
    return line ? fmt::format("PTX line {}: {}", line, message) : message;
}

}  // namespace

CUresult load_image(const void* bytes, Memory& memory, const ManagedMemory& managed,
                    const VariableMemory& variables, std::unique_ptr<hosted::Image>* loaded,
                    std::string* log) {
    auto found = find_ptx(bytes);
    if (auto* refusal = std::get_if<Refusal>(&found)) {
        *log = refusal->why;
        return refusal->error;
    }
    auto& texts = std::get<PtxTexts>(found);
    std::vector<ptx::Module> parts;
    for (const std::string& text : texts.parts) {
        auto parsed = ptx::parse(text);
        if (auto* problem = std::get_if<ptx::Diagnostic>(&parsed)) {
            *log = "PTX " + ptx::to_string(*problem);
            return CUDA_ERROR_INVALID_PTX;
        }
        parts.push_back(std::move(std::get<ptx::Module>(parsed)));
        if (parts.back().version_major > kMostPtxMajor) {
            *log = fmt::format("PTX {}.{}, which is newer than the simulated device",
                               parts.back().version_major, parts.back().version_minor);
            return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
        }
    }
    auto linked = Module::load(std::move(parts), memory, managed, variables);
    if (auto* problem = std::get_if<LoadError>(&linked)) {
        *log = located(problem->line, problem->message);
        return CUDA_ERROR_INVALID_PTX;
    }
    auto image = std::make_unique<PtxImage>();
    image->code = std::make_shared<LoadedModule>();
    image->code->module = std::move(std::get<std::unique_ptr<Module>>(linked));
    image->code->registers = std::move(texts.registers);
    for (const std::string& name : image->code->module->kernel_names()) {
        auto function = std::make_unique<PtxFunction>();
        function->image = image.get();
        function->name = name;
        function->code = image->code;
        image->functions[name] = std::move(function);
    }
    for (const Global& global : image->code->module->globals()) {
        image->globals[global.name] = {global.address, global.bytes,
                                       (global.managed && managed) || global.moved};
    }
    *loaded = std::move(image);
    return CUDA_SUCCESS;
}

CUresult prepare(PtxFunction& function, std::string* log) {
    LoadedModule& code = *function.code;
    std::lock_guard lock(code.decoding);
    if (function.kernel) return CUDA_SUCCESS;
    auto decoded = code.module->kernel(function.name);
    if (auto* problem = std::get_if<LoadError>(&decoded)) {
        *log = fmt::format("kernel {}: {}", function.name, located(problem->line, problem->message));
        return CUDA_ERROR_INVALID_PTX;
    }
    const DecodedKernel* kernel = std::get<const DecodedKernel*>(decoded);
    function.parameters.clear();
    for (const DecodedKernel::Parameter& each : kernel->parameters)
        function.parameters.push_back({each.offset, each.bytes});
    function.parameter_bytes = kernel->parameter_bytes;
    auto known = code.registers.find(function.name);
    function.registers = known != code.registers.end() ? known->second : kernel->registers;
    function.kernel = kernel;
    return CUDA_SUCCESS;
}

BlockNeeds PtxFunction::needs(uint32_t threads, size_t dynamic_shared) const {
    return {threads, registers,
            static_cast<uint32_t>(std::min<size_t>(kernel->static_shared + dynamic_shared, ~0u)),
            kernel->barriers};
}

uint32_t PtxFunction::most_dynamic_shared() const {
    auto set = attributes.find(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    if (set != attributes.end()) return static_cast<uint32_t>(std::max(set->second, 0));
    return kernel->static_shared >= kDefaultBlockSharedBytes
               ? 0
               : kDefaultBlockSharedBytes - kernel->static_shared;
}

CUresult check_launch(hosted::Launch& launch, uint32_t multiprocessors) {
    auto* function = static_cast<PtxFunction*>(hosted::find_function(launch.function));
    if (!function || !function->kernel) return CUDA_ERROR_INVALID_HANDLE;
    const DecodedKernel& kernel = *function->kernel;
    const unsigned* block = launch.block;
    const uint64_t threads = static_cast<uint64_t>(block[0]) * block[1] * block[2];
    if (block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > kMostBlockThreads)
        return CUDA_ERROR_INVALID_VALUE;
    if (launch.grid[0] > 0x7fffffffu || launch.grid[1] > 65535 || launch.grid[2] > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    const Dim3& required = kernel.required_block;
    if (required.x && !(required == Dim3{block[0], block[1], block[2]})) return CUDA_ERROR_INVALID_VALUE;
    if (threads > kernel.max_threads) return CUDA_ERROR_INVALID_VALUE;
    hosted::Lock lock(hosted::world());
    if (launch.shared_bytes > function->most_dynamic_shared()) return CUDA_ERROR_INVALID_VALUE;
    lock.unlock();
    const BlockNeeds needs = function->needs(static_cast<uint32_t>(threads), launch.shared_bytes);
    const uint32_t resident = blocks_per_multiprocessor(needs);
    if (resident == 0) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    const uint64_t blocks = static_cast<uint64_t>(launch.grid[0]) * launch.grid[1] * launch.grid[2];
    if (launch.places)
        multiprocessors =
            static_cast<uint32_t>(std::count(launch.places->begin(), launch.places->end(), true));
    if (launch.cooperative && blocks > static_cast<uint64_t>(resident) * multiprocessors) {
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    launch.code = std::make_shared<LaunchCode>(LaunchCode{function->code, &kernel, function->registers, {}});
    return CUDA_SUCCESS;
}

int function_attribute(const PtxFunction& function, CUfunction_attribute which) {
    const DecodedKernel& kernel = *function.kernel;
    switch (which) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: {
            // No more than its registers allow.
            uint32_t threads = kernel.max_threads;
            while (threads > kWarpThreads && blocks_per_multiprocessor(function.needs(threads, 0)) == 0)
                threads -= kWarpThreads;
            return static_cast<int>(threads);
        }
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            return static_cast<int>(kernel.static_shared);
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            return static_cast<int>(kernel.local_bytes);
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            return static_cast<int>(function.registers);
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            return kPtxVersion;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            return static_cast<int>(function.most_dynamic_shared());
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            return -1;
        default:
            return 0;
    }
}

}  // namespace smt::runtime::device::simulated
