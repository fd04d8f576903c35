"""Stands in for stop_library_kernels.py where there is no PyTorch: kernels of driver.py, on the simulated
device.
For tests the process ends at the kernel stub_ends, and there is no other kernel."""
import os

from driver import Driver

BLOCKS, BLOCK_NS, LAUNCHES = 300, 20_000, 1
NAMES = ("stub_long", "stub_wide")


class Stub:
    """Its result: how many blocks a launch had, as far as they counted themselves."""

    def __init__(self, place, name):
        self.place, self.launches = place, 0
        if name == "stub_ends":
            os._exit(9)
        self.kernel = place.driver.kernel(f"spend_{NAMES.index(name)}")
        self.blocks = BLOCKS * (1 + NAMES.index(name))
        self.before = place.driver.counted()
        self.step()

    def step(self):
        self.place.driver.launch(self.kernel, self.blocks, BLOCK_NS)
        self.launches += 1

    def result(self):
        counted = self.place.driver.counted() - self.before
        return str(counted / max(1, self.launches))


class Place:
    batch = LAUNCHES

    def __init__(self):
        self.driver = Driver()

    def names(self):
        return NAMES

    def make(self, name):
        return Stub(self, name)

    def wait(self):
        self.driver.wait()

    def step_us(self, _):
        return 0.0

    def facts(self, name, _):
        """As stop_kernels.py has them. On the simulated device so many blocks of 64 threads fit on an SM."""
        return {"kernel": f"spend_{NAMES.index(name)}", "ctas_per_sm": 32, "kernel_us": 0.0, "waves": 0.0,
                "grid": [self.make(name).blocks, 1, 1], "block_us": BLOCK_NS / 1e3, "block_by": "one wave"}
