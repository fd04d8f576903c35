"""Kernels of ours among those of stop_kernels.py: those of driver.py, whose blocks take a time that is given
and tell when they began and ended."""
import statistics

from blocks import fits, longest_in_flight

CLOCKED = 5   # launches


class Own:
    """Its result: how many blocks a launch had, as far as they counted themselves."""

    def __init__(self, driver, kernel, blocks, nanoseconds, threads):
        self.driver, self.symbol, self.launches = driver, kernel, 0
        self.kernel = driver.kernel(kernel)
        self.blocks, self.nanoseconds, self.threads = blocks, nanoseconds, threads
        self.before = driver.counted()
        self.step()

    def step(self):
        self.driver.launch(self.kernel, self.blocks, self.nanoseconds, self.threads)
        self.launches += 1

    def result(self):
        counted = self.driver.counted() - self.before
        return str(counted / max(1, self.launches))

    def facts(self, sms):
        """As stop_kernels.py has them; the block by its own clock."""
        runs = [self.driver.clocked(self.kernel, self.blocks, self.nanoseconds, self.threads)
                for _ in range(CLOCKED)]
        longest = [each for begins, ends in runs for each in longest_in_flight(begins, ends)]
        ctas = fits(self.threads, 0, 0)
        return {"kernel": self.symbol, "grid": [self.blocks, 1, 1], "block": [self.threads, 1, 1],
                "ctas_per_sm": ctas, "waves": self.blocks / (ctas * sms), "block_by": "clock",
                "kernel_us": statistics.median(max(ends) - min(begins) for begins, ends in runs) / 1e3,
                "block_us": statistics.median(longest)}
