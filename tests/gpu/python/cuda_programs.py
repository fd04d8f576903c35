"""cuda-python: the driver's and the runtime's functions by name, and cuda.core. One theme a program."""
import ctypes

import program as p
from program import program, show

import numpy as np
from cuda.bindings import driver as cu
from cuda.bindings import nvrtc
from cuda.bindings import runtime as rt

SOURCE = br"""
extern "C" __constant__ float scale;
extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void scaled(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] *= scale;
}"""


def call(result):
    """The values of a call that went well."""
    error, *values = result
    assert int(error) == 0, str(error)
    return values[0] if len(values) == 1 else values


def context():
    call(cu.cuInit(0))
    device = call(cu.cuDeviceGet(0))
    one = call(cu.cuDevicePrimaryCtxRetain(device))
    call(cu.cuCtxSetCurrent(one))
    return device


def compiled(source=SOURCE, ptx=False):
    made = call(nvrtc.nvrtcCreateProgram(source, b"kernels.cu", 0, [], []))
    device = call(cu.cuDeviceGet(0))
    kinds = cu.CUdevice_attribute
    major = call(cu.cuDeviceGetAttribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = call(cu.cuDeviceGetAttribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    call(nvrtc.nvrtcCompileProgram(
        made, 1, [f"--gpu-architecture={'compute' if ptx else 'sm'}_{major}{minor}".encode()]))
    size = call((nvrtc.nvrtcGetPTXSize if ptx else nvrtc.nvrtcGetCUBINSize)(made))
    image = b" " * size
    call((nvrtc.nvrtcGetPTX if ptx else nvrtc.nvrtcGetCUBIN)(made, image))
    return image


def launch(function, stream, *values, blocks=8, threads=128):
    values = list(values)
    kinds = [ctypes.c_void_p if isinstance(v, int) and
             v > 1 << 31 else ctypes.c_int if isinstance(v, int) else ctypes.c_float for v in values]
    call(cu.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream,
                           (tuple(values), tuple(kinds)), 0))


def device_pair(n=1000):
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    there = [call(cu.cuMemAlloc(x.nbytes)) for _ in range(2)]
    for pointer, data in zip(there, (x, y)):
        call(cu.cuMemcpyHtoD(pointer, data.ctypes.data, data.nbytes))
    return there


def total(pointer, n=1000):
    out = np.empty(n, np.float32)
    call(cu.cuCtxSynchronize())
    call(cu.cuMemcpyDtoH(out.ctypes.data, pointer, out.nbytes))
    return float(out.sum(dtype=np.float64))


@program
def driver_module():
    context()
    module = call(cu.cuModuleLoadData(compiled()))
    x, y = device_pair()
    launch(call(cu.cuModuleGetFunction(module, b"axpy")), 0, 2.0, int(x), int(y), 1000)
    show("axpy", total(y))
    address, size = call(cu.cuModuleGetGlobal(module, b"scale"))
    factor = np.full(1, 3, np.float32)
    call(cu.cuMemcpyHtoD(address, factor.ctypes.data, size))
    launch(call(cu.cuModuleGetFunction(module, b"scaled")), 0, int(y), 1000)
    show("scaled", total(y))
    call(cu.cuModuleUnload(module))


@program
def driver_library():
    context()
    library = call(cu.cuLibraryLoadData(compiled(ptx=True), [], [], 0, [], [], 0))
    kernel = call(cu.cuLibraryGetKernel(library, b"axpy"))
    x, y = device_pair()
    launch(call(cu.cuKernelGetFunction(kernel)), 0, 4.0, int(x), int(y), 1000)
    show("axpy", total(y), call(cu.cuLibraryGetKernelCount(library)))
    call(cu.cuLibraryUnload(library))


@program
def driver_link():
    context()
    kinds = cu.CUjitInputType
    state = call(cu.cuLinkCreate(0, [], []))
    image = compiled(ptx=True)
    call(cu.cuLinkAddData(state, kinds.CU_JIT_INPUT_PTX, image, len(image), b"kernels", 0, [], []))
    cubin, size = call(cu.cuLinkComplete(state))
    module = call(cu.cuModuleLoadData(cubin))
    x, y = device_pair()
    launch(call(cu.cuModuleGetFunction(module, b"axpy")), 0, 5.0, int(x), int(y), 1000)
    show("axpy", size > 0, total(y))
    call(cu.cuLinkDestroy(state))


@program
def driver_graph():
    context()
    module = call(cu.cuModuleLoadData(compiled()))
    function = call(cu.cuModuleGetFunction(module, b"axpy"))
    stream = call(cu.cuStreamCreate(1))
    x, y = device_pair()
    call(cu.cuStreamBeginCapture(stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    launch(function, stream, 1.0, int(x), int(y), 1000)
    graph = call(cu.cuStreamEndCapture(stream))
    whole = call(cu.cuGraphCreate(0))
    first = call(cu.cuGraphAddChildGraphNode(whole, [], 0, graph))
    call(cu.cuGraphAddChildGraphNode(whole, [first], 1, graph))
    made = call(cu.cuGraphInstantiate(whole, 0))
    for _ in range(3):
        call(cu.cuGraphLaunch(made, stream))
    call(cu.cuStreamSynchronize(stream))
    show("twice three times", total(y), len(call(cu.cuGraphGetNodes(whole, 2))))
    call(cu.cuGraphExecDestroy(made))
    call(cu.cuGraphDestroy(whole))


@program
def driver_pool():
    device = context()
    stream = call(cu.cuStreamCreate(1))
    pool = call(cu.cuDeviceGetDefaultMemPool(device))
    kinds = cu.CUmemPool_attribute
    call(cu.cuMemPoolSetAttribute(pool, kinds.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, cu.cuuint64_t(1 << 30)))
    held = [call(cu.cuMemAllocAsync(1 << 20, stream)) for _ in range(4)]
    call(cu.cuMemsetD8Async(held[0], 7, 1 << 20, stream))
    call(cu.cuStreamSynchronize(stream))
    used = call(cu.cuMemPoolGetAttribute(pool, kinds.CU_MEMPOOL_ATTR_USED_MEM_CURRENT))
    show("used", int(used))
    for pointer in held:
        call(cu.cuMemFreeAsync(pointer, stream))
    call(cu.cuStreamSynchronize(stream))
    show("used after", int(call(cu.cuMemPoolGetAttribute(pool, kinds.CU_MEMPOOL_ATTR_USED_MEM_CURRENT))))
    show("high", int(call(cu.cuMemPoolGetAttribute(pool, kinds.CU_MEMPOOL_ATTR_USED_MEM_HIGH))))
    call(cu.cuMemPoolTrimTo(pool, 0))


def virtual_memory(handle_type):
    device = context()
    prop = cu.CUmemAllocationProp()
    prop.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.location.id = int(device)
    prop.requestedHandleTypes = handle_type
    granularity = call(cu.cuMemGetAllocationGranularity(
        prop, cu.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM))
    handles = [call(cu.cuMemCreate(granularity, prop, 0)) for _ in range(2)]
    range_start = call(cu.cuMemAddressReserve(2 * granularity, 0, 0, 0))
    access = cu.CUmemAccessDesc()
    access.location, access.flags = prop.location, cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    for i, handle in enumerate(handles):
        call(cu.cuMemMap(int(range_start) + i * granularity, granularity, 0, handle, 0))
    call(cu.cuMemSetAccess(range_start, 2 * granularity, [access], 1))
    call(cu.cuMemsetD32(range_start, 9, 2 * granularity // 4))
    out = np.empty(2 * granularity // 4, np.uint32)
    call(cu.cuMemcpyDtoH(out.ctypes.data, range_start, out.nbytes))
    show("filled", int(out.sum(dtype=np.int64)) == 9 * out.size, granularity)
    call(cu.cuMemUnmap(range_start, 2 * granularity))
    call(cu.cuMemAddressFree(range_start, 2 * granularity))
    for handle in handles:
        call(cu.cuMemRelease(handle))


@program
def driver_virtual_memory():
    virtual_memory(cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE)


@program
def driver_virtual_memory_shareable():
    virtual_memory(cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)


@program
def driver_stream_memory_operations():
    context()
    stream, other = call(cu.cuStreamCreate(1)), call(cu.cuStreamCreate(1))
    flag = call(cu.cuMemAlloc(8))
    call(cu.cuMemsetD32(flag, 0, 2))
    x, y = device_pair()
    call(cu.cuStreamWaitValue32(stream, flag, 5, 0))
    call(cu.cuMemcpyDtoDAsync(y, x, 4000, stream))
    call(cu.cuStreamWriteValue32(other, flag, 5, 0))
    call(cu.cuStreamSynchronize(stream))
    show("copied", total(y))


@program
def driver_contexts():
    context()
    own = call(cu.cuCtxCreate(None, 0, call(cu.cuDeviceGet(0))))
    show("current", int(call(cu.cuCtxGetCurrent())) == int(own), int(call(cu.cuCtxGetDevice())))
    x, y = device_pair()
    module = call(cu.cuModuleLoadData(compiled()))
    launch(call(cu.cuModuleGetFunction(module, b"axpy")), 0, 3.0, int(x), int(y), 1000)
    show("axpy", total(y))
    call(cu.cuCtxDestroy(own))


@program
def driver_occupancy():
    context()
    module = call(cu.cuModuleLoadData(compiled()))
    function = call(cu.cuModuleGetFunction(module, b"axpy"))
    show("blocks", call(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, 256, 0)))
    kinds = cu.CUfunction_attribute
    show("attributes", call(cu.cuFuncGetAttribute(kinds.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function)),
         call(cu.cuFuncGetAttribute(kinds.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, function)) >= 0)
    show("name", call(cu.cuFuncGetName(function)))


@program
def runtime_functions():
    count = call(rt.cudaGetDeviceCount())
    properties = call(rt.cudaGetDeviceProperties(0))
    show("devices", count, properties.major, properties.multiProcessorCount)
    stream, data = call(rt.cudaStreamCreate()), np.arange(1000, dtype=np.int32)
    pointer, out = call(rt.cudaMallocAsync(data.nbytes, stream)), np.zeros_like(data)
    call(rt.cudaMemcpyAsync(pointer, data.ctypes.data, data.nbytes, rt.cudaMemcpyKind.cudaMemcpyHostToDevice,
                            stream))
    call(rt.cudaMemcpyAsync(out.ctypes.data, pointer, data.nbytes, rt.cudaMemcpyKind.cudaMemcpyDeviceToHost,
                            stream))
    call(rt.cudaFreeAsync(pointer, stream))
    call(rt.cudaStreamSynchronize(stream))
    show("there and back", int(out.sum()))
    pitch = call(rt.cudaMallocPitch(100, 50))
    call(rt.cudaMemset2D(pitch[0], pitch[1], 3, 100, 50))
    show("pitched", pitch[1] >= 100)
    show("bad pointer", str(rt.cudaMemset(0x10, 0, 4)[0]))


@program
def runtime_array():
    channel = call(rt.cudaCreateChannelDesc(32, 0, 0, 0, rt.cudaChannelFormatKind.cudaChannelFormatKindFloat))
    array = call(rt.cudaMallocArray(channel, 32, 16, 0))
    data, out = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    kinds = rt.cudaMemcpyKind
    call(rt.cudaMemcpy2DToArray(array, 0, 0, data.ctypes.data, 128, 128, 16, kinds.cudaMemcpyHostToDevice))
    call(rt.cudaMemcpy2DFromArray(out.ctypes.data, 128, array, 0, 0, 128, 16, kinds.cudaMemcpyDeviceToHost))
    show("array", float(out.sum()))
    call(rt.cudaFreeArray(array))


@program
def core_objects():
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch as start
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    made = Program(SOURCE.decode(), code_type="c++",
                   options=ProgramOptions(arch="sm_" + "".join(map(str, device.compute_capability))))
    kernel = made.compile("cubin").get_kernel("axpy")
    x, y = (device.allocate(4000, stream=stream) for _ in range(2))
    call(cu.cuMemsetD32Async(int(x.handle), 0x3f800000, 1000, int(stream.handle)))
    call(cu.cuMemsetD32Async(int(y.handle), 0x40000000, 1000, int(stream.handle)))
    start(stream, LaunchConfig(grid=8, block=128), kernel, np.float32(3), int(x.handle),
          int(y.handle), np.int32(1000))
    stream.sync()
    show("axpy", total(int(y.handle)))


@program
def core_graph():
    from cuda.core import Device, LaunchConfig, Program, launch as start
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    kernel = Program(SOURCE.decode(), code_type="c++").compile("cubin").get_kernel("axpy")
    x, y = device_pair()
    builder = device.create_graph_builder().begin_building()
    for _ in range(3):
        start(builder, LaunchConfig(grid=8, block=128), kernel, np.float32(1), int(x), int(y), np.int32(1000))
    graph = builder.end_building().complete()
    graph.upload(stream)
    graph.launch(stream)
    stream.sync()
    show("graph", total(y))


@program
def green_context():
    device = context()
    resource = call(cu.cuDeviceGetDevResource(device, cu.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))
    show("multiprocessors", resource.sm.smCount)


@program
def shared_memory_handle():
    context()
    pointer = call(cu.cuMemAlloc(1 << 21))
    show("handle", type(call(cu.cuIpcGetMemHandle(pointer))).__name__)


if __name__ == "__main__":
    p.main()
