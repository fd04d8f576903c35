"""What is to be added to the GPU's global timer to have this machine's monotonic clock, give or take a
microsecond or two.

A kernel of one thread answers a number in pinned memory with its time; that was read between the moment in
which we wrote the number and the one in which we saw the answer. Out of many such pairs of bounds the
narrowest are taken. The two clocks drift by some microseconds a second, so one asks before and after, and
goes by the line between.

A context of its own, natively: it has nothing to do between two questions.
"""
import ctypes
import time

ROUNDS = 2000
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry answer(.param .u64 mail, .param .u32 rounds)
{
    .reg .pred %p<4>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [mail];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, 1;
    mov.u64 %rd2, %globaltimer;
    add.u64 %rd2, %rd2, 1000000000;
wait:
    mov.u64 %rd3, %globaltimer;
    setp.gt.u64 %p1, %rd3, %rd2;
    @%p1 bra done;
    ld.volatile.global.u32 %r3, [%rd1];
    setp.ne.u32 %p2, %r3, %r2;
    @%p2 bra wait;
    mov.u64 %rd3, %globaltimer;
    st.volatile.global.u64 [%rd1+64], %rd3;
    membar.sys;
    st.volatile.global.u32 [%rd1+128], %r2;
    add.u32 %r2, %r2, 1;
    setp.le.u32 %p3, %r2, %r1;
    @%p3 bra wait;
done:
    ret;
}
"""


class Clock:
    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        context, module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self._call("cuCtxSetCurrent", context)
        self._call("cuModuleLoadData", ctypes.byref(module), PTX)
        self._call("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"answer")
        self.mail = ctypes.c_void_p()
        self._call("cuMemHostAlloc", ctypes.byref(self.mail), ctypes.c_size_t(4096), 3)   # portable, mapped

    def _call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: CUDA error {status}")

    def ask(self):
        """(this machine's time, ns to be added to the GPU's, give or take)."""
        ctypes.memset(self.mail, 0, 4096)
        said, seen = (ctypes.c_uint32.from_address(self.mail.value),
                      ctypes.c_uint32.from_address(self.mail.value + 128))
        theirs = ctypes.c_uint64.from_address(self.mail.value + 64)
        address, rounds = ctypes.c_uint64(self.mail.value), ctypes.c_uint32(ROUNDS)
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(rounds))
        self._call("cuLaunchKernel", self.kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
        bounds, times = [], []
        for turn in range(1, ROUNDS + 1):
            end = time.monotonic_ns() + 1_000_000_000
            before = time.monotonic_ns()
            said.value = turn
            while seen.value != turn:
                if time.monotonic_ns() > end:
                    raise RuntimeError("the GPU did not answer for a second")
            after = time.monotonic_ns()
            bounds.append((before - theirs.value, after - theirs.value))
            times.append(theirs.value)
        self._call("cuCtxSynchronize")
        # A timer that steps was read up to a step after what it says.
        step = min((b - a for a, b in zip(times, times[1:]) if b > a), default=0)
        least, most = max(low for low, _ in bounds) - step, min(high for _, high in bounds)
        return after, (least + most) // 2, (most - least) / 2


class SameClock:
    """A simulated device's journal has one clock."""

    def ask(self):
        return time.monotonic_ns(), 0, 0.0


class Shift:
    """Between two answers of a clock."""

    def __init__(self, before, after):
        self.before, self.after = before, after
        self.give_or_take = max(before[2], after[2])

    def at(self, time_ns):
        whole = max(1, self.after[0] - self.before[0])
        return self.before[1] + (self.after[1] - self.before[1]) * (time_ns - self.before[0]) / whole
