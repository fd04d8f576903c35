// The functions that nvcc generates calls to: registration by the program's constructors, the configuration
// of a launch between <<<>>> and its arguments, and the launch itself. Names and parameters are those of
// crt/host_runtime.h.
#include "cudart_written.gen.h"
#include "runtime/device/simulated/cudart/fatbin.h"
#include "runtime/device/simulated/cudart/launch.h"

namespace smt::cudart {

namespace {

// The arguments of a launch may launch kernels themselves, so configurations form a stack.
constexpr int kDepth = 16;

struct Configurations {
    uint3 grid[kDepth];
    uint3 block[kDepth];
    size_t shared_bytes[kDepth];
    CUstream_st* stream[kDepth];
    int depth;
};
constinit thread_local Configurations configurations{};

Image* image_of(void** handle) { return reinterpret_cast<Image*>(handle); }

}  // namespace

void** __cudaRegisterFatBinary(void* fatbin) {
    const auto* wrapper = static_cast<const FatbinWrapper*>(fatbin);
    if (!wrapper || wrapper->magic != FatbinWrapper::kMagic) return nullptr;
    return reinterpret_cast<void**>(add_image(wrapper));
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) { remove_image(image_of(handle)); }

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
    add_kernel(image_of(handle), host, name);
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t bytes, int, int) {
    add_variable(image_of(handle), host, name, bytes);
}

void __cudaRegisterManagedVar(void** handle, void** host_pointer, char*, const char* name, int, size_t bytes,
                              int, int) {
    add_managed(image_of(handle), host_pointer, name, bytes);
}

// Called before the host's first access to a managed variable of the image. The result is kept in a flag.
char __cudaInitModule(void** handle) {
    cudaError_t failed = begin();
    if (!failed) failed = load(image_of(handle));
    return finish(failed) == cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
    Configurations& all = configurations;
    if (all.depth == kDepth) return 1;  // makes the caller skip the launch
    all.grid[all.depth] = grid;
    all.block[all.depth] = block;
    all.shared_bytes[all.depth] = shared_bytes;
    all.stream[all.depth] = stream;
    ++all.depth;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
    Configurations& all = configurations;
    if (all.depth == 0) return finish(cudaErrorMissingConfiguration);
    --all.depth;
    *grid = dim3(all.grid[all.depth]);
    *block = dim3(all.block[all.depth]);
    *shared_bytes = all.shared_bytes[all.depth];
    *static_cast<CUstream_st**>(stream) = all.stream[all.depth];
    return cudaSuccess;
}

// The handle is ours, not a CUkernel: the program keeps it in a static variable for its whole life, beyond a
// reset of the device, and reports no error here. Its only use is __cudaLaunchKernel.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
    Entry* entry = find_entry(host);
    *kernel = reinterpret_cast<cudaKernel_t>(entry);
    return entry ? cudaSuccess : finish(cudaErrorInvalidResourceHandle);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
    if (cudaError_t failed = begin()) return finish(failed);
    if (!handle) return finish(cudaErrorInvalidResourceHandle);
    RegisteredKernel kernel{};
    if (cudaError_t failed = resolve(reinterpret_cast<Entry*>(handle), kernel)) return finish(failed);
    return finish(launch(kernel, grid, block, arguments, shared_bytes, stream));
}

}  // namespace smt::cudart
