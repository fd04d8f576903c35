"""A program of the driver API, for the simulated device: adds two vectors, as a tenant that it names."""

import ctypes

import smt

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [a];
    ld.param.u64 %d2, [b];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p bra done;
    mul.wide.u32 %d3, %r5, 4;
    add.u64 %d4, %d1, %d3;
    add.u64 %d5, %d2, %d3;
    ld.global.u32 %r6, [%d4];
    ld.global.u32 %r7, [%d5];
    add.u32 %r6, %r6, %r7;
    st.global.u32 [%d4], %r6;
done:
    ret;
}
"""
COUNT = 10_000


def main():
    smt.tenant("of-a-wheel", priority="high")
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        status = getattr(cuda, name)(*arguments)
        assert status == 0, f"{name} returns {status}"

    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"add")
    vector = ctypes.c_uint32 * COUNT
    a, b = vector(*range(COUNT)), vector(*(3 * i for i in range(COUNT)))
    at = [ctypes.c_uint64(), ctypes.c_uint64()]
    for place, values in zip(at, (a, b)):
        call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(ctypes.sizeof(values)))
        call("cuMemcpyHtoD_v2", place, values, ctypes.c_size_t(ctypes.sizeof(values)))
    given = [*at, ctypes.c_uint32(COUNT)]
    pointers = (ctypes.c_void_p * 3)(*(ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in given))
    call("cuLaunchKernel", kernel, (COUNT + 127) // 128, 1, 1, 128, 1, 1, 0, None, pointers, None)
    call("cuMemcpyDtoH_v2", a, at[0], ctypes.c_size_t(ctypes.sizeof(a)))
    assert list(a) == [4 * i for i in range(COUNT)]
    print("the sums are right")


main()
