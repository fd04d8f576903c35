// Kernel launches: the hottest path of the library. A launch is one record. It takes no lock, allocates
// nothing and waits for nothing, unless the configuration is implausible or the application may depend on the
// launch's error (cooperative launches).
#include "interpose/driver/launch.h"

#include "driver.gen.h"
#include "interpose/driver/objects.h"
#include "interpose/driver/order.h"
#include "interpose/driver/ranges.h"
#include "interpose/driver/refuse.h"
#include "interpose/transport/lane.h"
#include "runtime/protocol/try.h"

namespace smt::interpose {

using namespace protocol;

namespace {

constexpr uint32_t kMaxAttributes = 64;

// Sends a launch record. `answered`: waits for the driver's result.
CUresult launch_kernel(Function& function, Launch& launch, const CUlaunchAttribute* attributes,
                       const Parameters& parameters, CUstream stream, bool answered) {
    if (!stream_ref(stream, launch.stream) || function.image->session != thread_session)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!atomics_hold(function, parameters)) [[unlikely]]
        return refuse("cuLaunchKernel");
    if (!plausible(function, launch)) [[unlikely]]
        answered = true;
    launch.function = function.id;
    launch.parameter_bytes = function.parameter_bytes;
    if (CUresult status = order_after(stream)) [[unlikely]]
        return status;

    RemoteCall call(Op::kLaunch, launch_bound(launch));
    if (!call.open()) [[unlikely]]
        return call.status();
    call.in(launch);
    if (launch.attribute_count) call.in_bytes(attributes, launch.attribute_count * sizeof(CUlaunchAttribute));
    if (char* room = call.in_space(launch.parameter_bytes)) [[likely]]
        pack_parameters(function, parameters, room);
    CUresult status = answered ? or_late_error(call.wait()) : call.post();
    note_use(stream);
    return status;
}

// Attributes travel unchanged, except those that carry handles or addresses of the client. `answered` becomes
// true for launches of which only the driver can tell the feasibility.
CUresult check_attributes(const CUlaunchAttribute* attributes, uint32_t count, const Launch& launch,
                          bool& answered) {
    if (count && !attributes) return CUDA_ERROR_INVALID_VALUE;
    if (count > kMaxAttributes) return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < count; ++i) {
        const CUlaunchAttributeValue& value = attributes[i].value;
        switch (attributes[i].id) {
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
                if (value.programmaticEvent.event) return refuse("cuLaunchKernelEx");
                break;
            case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
                if (value.launchCompletionEvent.event) return refuse("cuLaunchKernelEx");
                break;
            case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
                if (value.deviceUpdatableKernelNode.deviceUpdatable) return refuse("cuLaunchKernelEx");
                break;
            case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
                answered = answered || value.cooperative;
                break;
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
                const unsigned int cluster[3] = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
                for (int axis = 0; axis < 3; ++axis)
                    if (cluster[axis] == 0 || launch.grid[axis] % cluster[axis]) answered = true;
                if (cluster[0] * cluster[1] * cluster[2] > 8) answered = true;  // every device supports 8
                break;
            }
            default:
                break;
        }
    }
    return CUDA_SUCCESS;
}

}  // namespace

bool takes_managed(const Function& function, const Parameters& parameters) {
    if (!parameters.buffer && !parameters.each) return false;  // it has none
    for (uint32_t i = 0; i < function.parameter_count; ++i) {
        const ParameterInfo& info = function.parameters[i];
        const char* value = parameters.buffer ? static_cast<const char*>(parameters.buffer) + info.offset
                                              : static_cast<const char*>(parameters.each[i]);
        const uint64_t given = parameters.buffer ? parameters.buffer_bytes : info.offset + info.bytes;
        for (uint32_t at = 0;
             at + sizeof(uint64_t) <= info.bytes && info.offset + at + sizeof(uint64_t) <= given;
             at += sizeof(uint64_t)) {
            uint64_t address;
            driver::Range range;
            std::memcpy(&address, value + at, sizeof address);
            if (driver::find_range(address, range) && range.memory == driver::Memory::kManaged) return true;
        }
    }
    return false;
}

CUresult find_parameters(const Function& function, void** kernel_params, void** extra,
                         Parameters& parameters) {
    if (kernel_params && !extra) [[likely]] {
        parameters.each = kernel_params;
        return CUDA_SUCCESS;
    }
    if (kernel_params && extra) return CUDA_ERROR_INVALID_VALUE;
    if (!extra) return function.parameter_count ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

    size_t bytes = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            parameters.buffer = extra[1];
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
            bytes = *static_cast<size_t*>(extra[1]);
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (function.parameter_count && (!parameters.buffer || bytes == 0)) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > function.parameter_bytes) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    parameters.buffer_bytes = bytes;
    return CUDA_SUCCESS;
}

namespace driver {

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream, void** kernelParams, void** extra) {
    Function* function = find_function(f);
    if (!function) [[unlikely]]
        return CUDA_ERROR_INVALID_HANDLE;
    Parameters parameters;
    if (CUresult status = find_parameters(*function, kernelParams, extra, parameters)) [[unlikely]]
        return status;
    Launch launch{0, 0, {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes, 0,
                  0, 0};
    return launch_kernel(*function, launch, nullptr, parameters, hStream, false);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                   unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                   void** kernelParams) {
    Function* function = find_function(f);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    Parameters parameters;
    SMT_TRY(find_parameters(*function, kernelParams, nullptr, parameters));
    Launch launch{0,
                  0,
                  {gridDimX, gridDimY, gridDimZ},
                  {blockDimX, blockDimY, blockDimZ},
                  sharedMemBytes,
                  0,
                  0,
                  kLaunchCooperative};
    return launch_kernel(*function, launch, nullptr, parameters, hStream, true);
}

// `stream` is the default stream of the called entry point.
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra,
                          CUstream stream) {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    Function* function = find_function(f);
    if (!function) [[unlikely]]
        return CUDA_ERROR_INVALID_HANDLE;
    Parameters parameters;
    if (CUresult status = find_parameters(*function, kernelParams, extra, parameters)) [[unlikely]]
        return status;
    Launch launch{0,
                  0,
                  {config->gridDimX, config->gridDimY, config->gridDimZ},
                  {config->blockDimX, config->blockDimY, config->blockDimZ},
                  config->sharedMemBytes,
                  config->numAttrs,
                  0,
                  0};
    bool answered = false;
    SMT_TRY(check_attributes(config->attrs, config->numAttrs, launch, answered));
    if (config->hStream) stream = config->hStream;
    return launch_kernel(*function, launch, config->attrs, parameters, stream, answered);
}

}  // namespace driver

}  // namespace smt::interpose
