"""Programs that stand in for those of programs.py where there is no PyTorch and no GPU. Under smt, when its
driver is preloaded for the simulated device, each request and step fills and reads memory of that device;
else they compute on the CPU. They cannot show what a mode is worth."""
import ctypes
import hashlib
import os
import time

from names import parse

BYTES = 4096
COST_MS = {False: 1.0, True: 3.0}   # of a request, of a step


class Driver:
    """A piece of memory of the simulated device."""

    def __init__(self):
        self.cuda, self.memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
        context = ctypes.c_void_p()
        self.check("cuInit", 0)
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.check("cuCtxSetCurrent", context)
        self.check("cuMemAlloc_v2", ctypes.byref(self.memory), BYTES)
        self.count = 0

    def check(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: {status}")

    def work(self, seconds):
        self.count = (self.count + 1) % 256
        found = ctypes.create_string_buffer(BYTES)
        self.check("cuMemsetD8_v2", self.memory, ctypes.c_ubyte(self.count), ctypes.c_size_t(BYTES))
        self.check("cuMemcpyDtoH_v2", found, self.memory, ctypes.c_size_t(BYTES))
        time.sleep(seconds)
        return found.raw == bytes([self.count]) * BYTES


class Host:
    def work(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            hashlib.sha256(bytes(BYTES)).digest()
        return True


class Stub:
    """For tests: COLOCATE_STUB_FAILS names a program that cannot be made, COLOCATE_STUB_ENDS one whose
    process ends in its second step, unless the file COLOCATE_STUB_MARK is there, which it makes."""

    def __init__(self, name, place):
        self.seconds, self.place, self.bad = COST_MS[parse(name).training] / 1e3, place, False
        ends = os.environ.get("COLOCATE_STUB_ENDS") == name
        self.steps, self.mark_of_end = 0, os.environ["COLOCATE_STUB_MARK"] if ends else None

    def request(self):
        self.steps += 1
        if self.steps == 2 and self.mark_of_end and not os.path.exists(self.mark_of_end):
            open(self.mark_of_end, "w").close()
            os._exit(9)
        self.bad |= not self.place.work(self.seconds)

    step = request

    def mark(self):
        return self

    def wait(self):
        pass

    def warm(self, times=1):
        self.request()

    def leave(self):
        pass

    def wrong(self):
        return self.bad


PLACE = []


def prepare(_):
    PLACE[:] = [Driver() if "libsmt" in os.environ.get("LD_PRELOAD", "") else Host()]


def make(name, _):
    if os.environ.get("COLOCATE_STUB_FAILS") == name:
        raise RuntimeError("a stub that fails")
    return Stub(name, PLACE[0])


def settle(_):
    pass
