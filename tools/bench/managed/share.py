"""A small urgent program behind a large one: under smt by priority, MPS, MPS with client priority and
time-slicing. Rounds of all modes, and of all pairs in each. Counted are launches of the small one while the
large one was at work."""
import statistics
import time

from harness import Child, Runtime, tail
from mps import Mps
from printed import ENDS, TIMES, numbers, quantile

# Small, large, and iterations that keep the large one busy for a second and a half. nbody and tpacf leave
# room for newcomers, the others fill the GPU. arrivals has a request of some 60 us every 2 ms, the other
# small ones come again as soon as they are done.
PAIRS = [("arrivals", "black_scholes", 260), ("arrivals", "md5_hash", 160),
         ("arrivals", "binomial_options", 190), ("arrivals", "nbody", 210),
         ("vector_add", "black_scholes", 260), ("vector_add", "md5_hash", 160),
         ("nearest_neighbour", "nbody", 210), ("matrix_multiply", "tpacf", 75)]
ARRIVALS = ["200", "2000", "20000", "times"]   # requests, us between them, rounds of each
MODES = ["priority", "time-sliced", "mps", "mps-priority"]


def window(times, ends):
    """From the first launch to the end of the last one."""
    return (ends[0] - times[0] / 1e3, ends[-1]) if ends else (0, 0)


def split(times, ends, window, whole):
    """The launches within a window, wholly or in part, and the others."""
    inside, outside = [], []
    for ms, end in zip(times, ends):
        meets = end - ms / 1e3 < window[1] and end > window[0]
        holds = end <= window[1] and end - ms / 1e3 >= window[0]
        (inside if (holds if whole else meets) else outside).append(ms)
    return inside, outside


class Share:
    def __init__(self, managed, end):
        self.managed, self.options, self.end = managed, managed.options, end
        self.rows = []

    def warm_up(self):
        """The driver compiles what is managed by its PTX when it first sees it, and keeps that."""
        with Runtime(self.managed.places) as runtime:
            for name in sorted({name for pair in PAIRS[:self.options.share_pairs] for name in pair[:2]} -
                               {"arrivals"}):
                self.managed.once("share-warm-up", name, "trivial", 1, True, runtime)

    def all(self):
        self.warm_up()
        modes = self.options.share_modes.split(",")
        for turn in range(self.options.share_rounds):
            for mode in modes if turn % 2 == 0 else modes[::-1]:
                smt = mode in ("priority", "fifo")
                with Runtime(self.managed.places,
                             SMT_POLICY=mode if smt else "fifo") as runtime, Mps(mode) as mps:
                    for pair in PAIRS[:self.options.share_pairs]:
                        if time.monotonic() < self.end:
                            self.rows.append(self.pair(*pair, mode, turn, runtime if smt else None, mps))
        self.show(modes)

    def pair(self, small, large, background, mode, turn, runtime, mps):
        variables = {**self.managed.environment, **mps.variables}
        preload = self.managed.places.preload if runtime else None
        tenants = [runtime.variables(SMT_PRIORITY=p) if runtime else mps.client(p) for p in ("low", "high")]
        options = self.options
        back = Child([self.managed.program(large, runtime is not None), "--size", options.share_size,
                      "--iterations", str(background), "--times"],
                     {**variables, **tenants[0]}, preload, 60)
        # until it computes, mostly; what it does before and after is not counted
        time.sleep(options.share_head_start)
        urgent = [options.arrivals, *ARRIVALS] if small == "arrivals" else \
            [self.managed.program(small, runtime is not None), "--size", options.share_small_size,
             "--iterations", str(options.share_iterations), "--times"]
        front = Child(urgent, {**variables, **tenants[1]}, preload, 60).finish()
        behind = back.finish()
        served = front["rc"] == 0 if small == "arrivals" else self.managed.right(front, small,
                                                                                 options.share_small_size)
        ok = served and self.managed.right(behind, large, options.share_size)
        self.managed.wrong += not ok
        mine, others = [(numbers(TIMES, d["out"]), numbers(ENDS, d["out"])) for d in (front, behind)]
        small_ms, left_out = split(*mine, window(*others), whole=True)
        beside, alone = split(*others, window(*mine), whole=False)
        more = {} if ok else {"err": [tail(front["err"]), tail(behind["err"])],
                              "rc": [front["rc"], behind["rc"]]}
        return self.managed.lines.add(part="share", small=small, large=large, mode=mode, round=turn,
                                      ok=ok, small_ms=small_ms,
                                      left_out=len(left_out), large_beside_ms=beside, large_alone_ms=alone,
                                      seconds=behind["seconds"], **more)

    def show(self, modes):
        """large ms: its launch without the small one; lost ms: by how much its launches took longer, for each
        of the small one's."""
        print(f"{'small':<18} {'behind':<14} {'mode':<13} {'p50 ms':>8} {'p99 ms':>8} {'p50 of rounds':>18} "
              f"{'n':>5} {'rounds':>6} "
              f"{'large ms':>9} {'lost ms':>9}")
        for small, large, _ in PAIRS[:self.options.share_pairs]:
            middle = {}
            for mode in modes:
                rows = [row for row in self.rows if (row["small"], row["large"], row["mode"]) ==
                        (small, large, mode) and row["small_ms"]]
                if not rows:
                    print(f"{small:<18} {large:<14} {mode:<13} nothing")
                    continue
                times = [t for row in rows for t in row["small_ms"]]
                rounds = [statistics.median(row["small_ms"]) for row in rows]
                alone = [t for row in rows for t in row["large_alone_ms"]]
                usual = statistics.median(alone) if alone else float("nan")
                lost = sum(t - usual for row in rows for t in row["large_beside_ms"]) / len(times)
                middle[mode] = statistics.median(times)
                spread = f"{min(rounds):.4f}..{max(rounds):.4f}"
                print(f"{small:<18} {large:<14} {mode:<13} {middle[mode]:>8.4f} {quantile(times, .99):>8.4f} "
                      f"{spread:>18} "
                      f"{len(times):>5} {len(rows):>6} {usual:>9.3f} {lost:>9.3f}")
            if "priority" in middle and middle.get("mps-priority"):
                print(f"{'':<33} priority over mps-priority: "
                      f"{middle['priority'] / middle['mps-priority']:.3f}")
