// Error names and texts: the real driver's where there is one, else this table, in numerical order.
#include "driver.gen.h"
#include "interpose/process/real_driver.h"

namespace smt::interpose {

namespace {

struct ErrorText {
    CUresult error;
    const char* name;
    const char* text;
};

#define SMT_ERROR(error, text) {error, #error, text}
constexpr ErrorText kErrors[] = {
    SMT_ERROR(CUDA_SUCCESS, "no error"),
    SMT_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    SMT_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    SMT_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    SMT_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    SMT_ERROR(CUDA_ERROR_PROFILER_DISABLED, "profiler disabled while using external profiling tool"),
    SMT_ERROR(CUDA_ERROR_PROFILER_NOT_INITIALIZED, "profiler not initialized: call cudaProfilerInitialize()"),
    SMT_ERROR(CUDA_ERROR_PROFILER_ALREADY_STARTED, "profiler already started"),
    SMT_ERROR(CUDA_ERROR_PROFILER_ALREADY_STOPPED, "profiler already stopped"),
    SMT_ERROR(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
    SMT_ERROR(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
              "API call is not supported in the installed CUDA driver"),
    SMT_ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    SMT_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    SMT_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    SMT_ERROR(CUDA_ERROR_DEVICE_NOT_LICENSED, "device doesn't have valid Grid license"),
    SMT_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    SMT_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    SMT_ERROR(CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "context already current"),
    SMT_ERROR(CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"),
    SMT_ERROR(CUDA_ERROR_UNMAP_FAILED, "unmapping of buffer object failed"),
    SMT_ERROR(CUDA_ERROR_ARRAY_IS_MAPPED, "array is mapped"),
    SMT_ERROR(CUDA_ERROR_ALREADY_MAPPED, "resource already mapped"),
    SMT_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    SMT_ERROR(CUDA_ERROR_ALREADY_ACQUIRED, "resource already acquired"),
    SMT_ERROR(CUDA_ERROR_NOT_MAPPED, "resource not mapped"),
    SMT_ERROR(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "resource not mapped as array"),
    SMT_ERROR(CUDA_ERROR_NOT_MAPPED_AS_POINTER, "resource not mapped as pointer"),
    SMT_ERROR(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    SMT_ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
    SMT_ERROR(CUDA_ERROR_CONTEXT_ALREADY_IN_USE,
              "exclusive-thread device already in use by a different thread"),
    SMT_ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
    SMT_ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    SMT_ERROR(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "invalid OpenGL or DirectX context"),
    SMT_ERROR(CUDA_ERROR_NVLINK_UNCORRECTABLE, "uncorrectable NVLink error detected during the execution"),
    SMT_ERROR(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "PTX JIT compiler library not found"),
    SMT_ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
              "the provided PTX was compiled with an unsupported toolchain."),
    SMT_ERROR(CUDA_ERROR_JIT_COMPILATION_DISABLED, "PTX JIT compilation was disabled"),
    SMT_ERROR(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the provided execution affinity is not supported"),
    SMT_ERROR(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC,
              "the provided PTX contains unsupported call to cudaDeviceSynchronize"),
    SMT_ERROR(CUDA_ERROR_CONTAINED, "Invalid access of peer GPU memory over nvlink or a hardware error"),
    SMT_ERROR(CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid"),
    SMT_ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    SMT_ERROR(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "shared object symbol not found"),
    SMT_ERROR(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "shared object initialization failed"),
    SMT_ERROR(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    SMT_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    SMT_ERROR(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    SMT_ERROR(CUDA_ERROR_LOSSY_QUERY, "attempted introspection would be semantically lossy"),
    SMT_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    SMT_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    SMT_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    SMT_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    SMT_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    SMT_ERROR(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "launch uses incompatible texturing mode"),
    SMT_ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    SMT_ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    SMT_ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process"),
    SMT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    SMT_ERROR(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    SMT_ERROR(CUDA_ERROR_TOO_MANY_PEERS, "peer mapping resources exhausted"),
    SMT_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
              "part or all of the requested memory range is already mapped"),
    SMT_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
              "pointer does not correspond to a registered memory region"),
    SMT_ERROR(CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
    SMT_ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    SMT_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    SMT_ERROR(CUDA_ERROR_INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space"),
    SMT_ERROR(CUDA_ERROR_INVALID_PC, "invalid program counter"),
    SMT_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    SMT_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    SMT_ERROR(CUDA_ERROR_TENSOR_MEMORY_LEAK, "tensor memory not completely freed"),
    SMT_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    SMT_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    SMT_ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    SMT_ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
              "system has unsupported display driver / cuda driver combination"),
    SMT_ERROR(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
              "forward compatibility was attempted on non supported HW"),
    SMT_ERROR(CUDA_ERROR_MPS_CONNECTION_FAILED,
              "MPS client failed to connect to the MPS control daemon or the MPS server"),
    SMT_ERROR(CUDA_ERROR_MPS_RPC_FAILURE,
              "the remote procedural call between the MPS server and the MPS client failed"),
    SMT_ERROR(CUDA_ERROR_MPS_SERVER_NOT_READY, "MPS server is not ready to accept new MPS client requests"),
    SMT_ERROR(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
              "the hardware resources required to create MPS client have been exhausted"),
    SMT_ERROR(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED,
              "the hardware resources required to support device connections have been exhausted"),
    SMT_ERROR(CUDA_ERROR_MPS_CLIENT_TERMINATED, "the MPS client has been terminated by the server"),
    SMT_ERROR(
        CUDA_ERROR_CDP_NOT_SUPPORTED,
        "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it"),
    SMT_ERROR(CUDA_ERROR_CDP_VERSION_MISMATCH,
              "unsupported interaction between different versions of CUDA Dynamic Parallelism"),
    SMT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    SMT_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
              "operation failed due to a previous error during capture"),
    SMT_ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE,
              "operation would result in a merge of separate capture sequences"),
    SMT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
    SMT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    SMT_ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
    SMT_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
              "operation would make the legacy stream depend on a capturing blocking stream"),
    SMT_ERROR(CUDA_ERROR_CAPTURED_EVENT,
              "operation not permitted on an event last recorded in a capturing stream"),
    SMT_ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
              "attempt to terminate a thread-local capture sequence from another thread"),
    SMT_ERROR(CUDA_ERROR_TIMEOUT, "wait operation timed out"),
    SMT_ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
              "the graph update was not performed because it included changes which violated constraints "
              "specific to instantiated graph update"),
    SMT_ERROR(CUDA_ERROR_EXTERNAL_DEVICE, "an async error has occured in external entity outside of CUDA"),
    SMT_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE,
              "a kernel launch error has occurred due to cluster misconfiguration"),
    SMT_ERROR(CUDA_ERROR_FUNCTION_NOT_LOADED, "the function handle is not loaded when querying"),
    SMT_ERROR(CUDA_ERROR_INVALID_RESOURCE_TYPE, "the provided resource type is not valid for the operation"),
    SMT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
              "one or more resources are insufficient or non-applicable for the operation"),
    SMT_ERROR(CUDA_ERROR_KEY_ROTATION, "an error happened during the key rotation sequence"),
    SMT_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef SMT_ERROR

const ErrorText* find_error(CUresult error) {
    for (const ErrorText& row : kErrors) {
        if (row.error == error) return &row;
    }
    return nullptr;
}

}  // namespace

namespace driver {

CUresult cuGetErrorName(CUresult error, const char** name) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    const DriverApi* driver = real_driver();
    if (driver && driver->cuGetErrorName) return driver->cuGetErrorName(error, name);
    const ErrorText* found = find_error(error);
    *name = found ? found->name : nullptr;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    const DriverApi* driver = real_driver();
    if (driver && driver->cuGetErrorString) return driver->cuGetErrorString(error, text);
    const ErrorText* found = find_error(error);
    *text = found ? found->text : nullptr;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace driver

}  // namespace smt::interpose
