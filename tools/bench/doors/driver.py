"""The CUDA driver as a Python program calls it, for programs that need no library: kernels are PTX."""
import ctypes

# Each block is there for so many nanoseconds, and counts itself. Where there is room for it, it also writes
# when it began and ended, in nanoseconds of the GPU's clock.
ENTRY = """
.visible .entry NAME(.param .u64 count, .param .u64 nanoseconds, .param .u64 times)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %rd<7>;
    mov.u64 %rd1, %globaltimer;
    ld.param.u64 %rd0, [nanoseconds];
again:
    nanosleep.u32 2000;
    mov.u64 %rd2, %globaltimer;
    sub.s64 %rd2, %rd2, %rd1;
    setp.lt.u64 %p, %rd2, %rd0;
    @%p bra again;
    ld.param.u64 %rd3, [count];
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p, %r0, 0;
    @%p bra done;
    mov.u64 %rd6, 1;
    red.global.add.u64 [%rd3], %rd6;
    ld.param.u64 %rd4, [times];
    setp.eq.u64 %p, %rd4, 0;
    @%p bra done;
    mov.u32 %r2, %ctaid.x;
    mul.wide.u32 %rd5, %r2, 16;
    add.s64 %rd4, %rd4, %rd5;
    st.global.u64 [%rd4], %rd1;
    mov.u64 %rd6, %globaltimer;
    st.global.u64 [%rd4+8], %rd6;
done:
    ret;
}
"""
PTX = ".version 7.8\n.target sm_80\n.address_size 64\n" + "".join(
    ENTRY.replace("NAME", name) for name in ("spend", "spend_0", "spend_1", "spend_2", "spend_3"))


class Driver:
    """A context, a stream's worth of launches, and a number that each block of `spend` counts in."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, self.module, self.number = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        self.call("cuModuleLoadData", ctypes.byref(self.module), PTX.encode())
        self.call("cuMemAlloc_v2", ctypes.byref(self.number), ctypes.c_size_t(4096))
        self.call("cuMemsetD8_v2", self.number, ctypes.c_ubyte(0), ctypes.c_size_t(4096))

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: CUDA error {status}")

    def kernel(self, name):
        found = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(found), self.module, name.encode())
        return found

    def launch(self, kernel, blocks, nanoseconds, threads=64, times=0):
        values = [ctypes.c_uint64(each) for each in (self.number.value, nanoseconds, times)]
        parameters = (ctypes.c_void_p * 3)(*map(ctypes.addressof, values))
        self.call("cuLaunchKernel", kernel, blocks, 1, 1, threads, 1, 1, 0, None, parameters, None)

    def clocked(self, kernel, blocks, nanoseconds, threads=64):
        """When each block of a launch began and ended, in ns of the GPU's clock: two lists."""
        times, found = ctypes.c_uint64(), (ctypes.c_uint64 * (2 * blocks))()
        self.call("cuMemAlloc_v2", ctypes.byref(times), ctypes.c_size_t(16 * blocks))
        try:
            self.launch(kernel, blocks, nanoseconds, threads, times.value)
            self.call("cuMemcpyDtoH_v2", found, times, ctypes.c_size_t(16 * blocks))
        finally:
            self.call("cuMemFree_v2", times)
        return list(found[::2]), list(found[1::2])

    def wait(self):
        self.call("cuCtxSynchronize")

    def counted(self):
        found = ctypes.c_uint64()
        self.call("cuMemcpyDtoH_v2", ctypes.byref(found), self.number, ctypes.c_size_t(8))
        return found.value
