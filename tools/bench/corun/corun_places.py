"""Parts of corun.py: queues of programs, and programs on parts of the GPU."""
import itertools
import json
import os
import re
import statistics
import time

from corun_pairs import spread
from printed import ENDS, TIMES, numbers, quantile
from stage import MEASURED, Stage

median = statistics.median


def whole(rows):
    """From the first launch of any to the end of the last."""
    begins = [row["ends_s"][0] - row["times_ms"][0] / 1e3 for row in rows if row["ends_s"]]
    return max(row["ends_s"][-1] for row in rows if row["ends_s"]) - min(begins)


class Queue:
    """Four programs, each some hundred milliseconds long alone. `smt profile --sweep` counts their
    instructions first and times them by CTAs, which slice goes by; slice-measured (not among the modes unless
    it is named) goes by what `smt profile --pair` says of every two."""
    PROGRAMS = ("md5_hash", "stencil3d", "black_scholes", "matrix_multiply")
    MODES = ["mps", "fifo", "greedy", "slice"]

    def __init__(self, stage):
        self.stage, self.found = stage, {}

    def measure(self, end):
        stage = self.stage
        for name in self.PROGRAMS:
            if not stage.options.known:
                # before it comes to the server, which looks up what is known when it does
                stage.profile(name, "--sweep", "--runs", "1")
            stage.measure_alone(name)
        modes = stage.options.modes.split(",") if stage.options.modes else self.MODES
        if MEASURED in modes and not stage.options.known:
            stage.measure_pairs(self.PROGRAMS, 1.5)
        elif MEASURED in modes and not os.path.exists(stage.stores["pairs"]):
            raise FileNotFoundError(f"{stage.stores['pairs']}: --known, and no pairs were measured")
        halves = [((a, b), tuple(c for c in self.PROGRAMS if c not in (a, b)))
                  for a, b in itertools.combinations(self.PROGRAMS, 2) if a == self.PROGRAMS[0]]
        for turn in range(stage.options.rounds):
            names = self.PROGRAMS if turn % 2 == 0 else self.PROGRAMS[::-1]
            for mode in modes:
                if time.monotonic() > end:
                    return
                rows = stage.together(names, mode, times=1.0)
                self.add(turn, mode, rows, whole(rows))
            # every way to pair them, under the quotas that make the most of a pair
            for pairs in halves if turn < 2 else []:
                if time.monotonic() > end:
                    return
                name = "pairs " + ", ".join("+".join(pair) for pair in pairs)
                if not re.search(stage.options.select, name):
                    continue
                rows = [stage.together(pair, "greedy", times=1.0) for pair in pairs]
                self.add(turn, name, sum(rows, []), sum(whole(each) for each in rows))

    def add(self, turn, mode, rows, seconds):
        self.stage.lines.add(part="queue", mode=mode, round=turn, seconds=seconds, programs=rows)
        sequential = sum(self.stage.iterations(row["program"]) / self.stage.alone[row["program"]]
                         for row in rows)
        self.found.setdefault(mode, []).append(seconds / sequential)

    def show(self):
        print(f"{'queue of ' + ' '.join(self.PROGRAMS):<75} {'of one after the other':>22} {'of runs':>14} "
              f"{'n':>2}")
        for mode, parts in self.found.items():
            print(f"{mode:<75} {median(parts):>22.3f} {spread(parts):>14} {len(parts):>2}")


class Sms:
    PROGRAMS, COUNTS = ("vector_add", "stencil3d", "black_scholes", "binomial_options",
                        "nbody"), (0, 120, 112, 96, 80, 64, 32)

    def __init__(self, stage):
        self.stage, self.found = stage, {}

    def measure(self, end):
        stage = self.stage
        stage.choose("fifo")
        for turn in range(min(3, stage.options.rounds)):
            for name in self.PROGRAMS:
                stage.measure_alone(name)
                for count in (0, 8, 4) if stage.simulated else self.COUNTS:
                    if time.monotonic() > end:
                        return
                    row = stage.finish(name,
                                       stage.start(name, stage.iterations(name, 0.5), "fifo", sms=count))
                    stage.lines.add(part="sms", sms=count, round=turn, **row)
                    if row["times_ms"]:
                        self.found.setdefault(name,
                                              {}).setdefault(count, []).append(median(row["times_ms"][1:]))

    def show(self):
        print("time on so many multiprocessors, of that on all (spread of the runs)")
        for name, by_count in self.found.items():
            base = median(by_count[0])
            print(f"{name:<18} " +
                  "  ".join(f"{count or 'all'}: {median(ms) / base:.3f} ({(max(ms) - min(ms)) / base:.3f})"
                            for count, ms in by_count.items()))


class Compact:
    """pointer_chase and stencil3d get as much done on 30 and 85 multiprocessors as on all, which leaves room
    for a third; vector_add leaves none. Where workers were is asked of a server of its own, for writing it
    down takes time."""
    GROUPS = (("pointer_chase", "stencil3d"), ("pointer_chase", "stencil3d", "md5_hash"),
              ("vector_add", "stencil3d", "md5_hash"))
    MODES = ["mps", "fifo", "compact"]

    def __init__(self, stage):
        self.stage, self.found = stage, {}

    def measure(self, end):
        outer = self.stage
        for name in dict.fromkeys(sum(self.GROUPS, ())):
            if not outer.options.known:
                outer.profile(name, "--sweep", "--runs", "1")
            outer.measure_alone(name)
        for turn in range(outer.options.rounds):
            for names in self.GROUPS:
                for mode in self.MODES:
                    if time.monotonic() > end:
                        return
                    self.one(names if turn % 2 == 0 else names[::-1], mode, turn)

    def one(self, names, mode, turn):
        outer = self.stage
        rows, used = outer.together(names, mode), None
        if mode == "compact" and turn == 0:
            used = self.places(outer, names, mode)
        seconds = whole(rows)
        outer.lines.add(part="compact", mode=mode, round=turn, seconds=seconds, multiprocessors=used,
                        programs=rows)
        sequential = sum(outer.iterations(name, 2.0) / outer.alone[name] for name in names)
        self.found.setdefault((tuple(sorted(names)), mode), []).append((seconds / sequential, used))

    @classmethod
    def places(cls, outer, names, mode):
        """Once more, for where they were."""
        with Stage(outer.options, f"places-{'-'.join(names)}.jsonl", SMT_JOURNAL="mapping") as stage:
            stage.alone = outer.alone
            stage.together(names, mode)
            outer.wrong += stage.wrong
            return cls.multiprocessors(stage)

    @staticmethod
    def multiprocessors(stage):
        """While all worked: on how many each tenant's launches were, at the median, and on how many there was
        any program."""
        by_tenant = {}
        for line in stage.smt("log", "--mapping", "--json").splitlines():
            entry = json.loads(line)
            # together()'s
            if entry.get("kind") == "mapping" and entry.get("sms") and entry["tenant"][1:2] == "-":
                by_tenant.setdefault(entry["tenant"], []).append((entry["start_ns"],
                                                                  entry["end_ns"], entry["sms"]))
        if not by_tenant:
            return None
        begin, end = max(entries[0][1] for entries in by_tenant.values()), min(
            entries[-1][0] for entries in by_tenant.values())
        during = [(start, stop, tenant, set(sms)) for tenant, entries in by_tenant.items()
                  for start, stop, sms in entries if start < end and stop > begin]
        instants = [begin + (end - begin) * turn / 200 for turn in range(200)] if end > begin else []
        there = [[(tenant, sms) for start, stop, tenant, sms in during if start <= at <= stop]
                 for at in instants]
        found = {tenant: median([len(sms) for each in there for who, sms in each if who == tenant] or [0])
                 for tenant in by_tenant}
        return {**found, "any": median([len(set().union(*(sms for _, sms in each)))
                                            for each in there if len(each) > 1] or [0])}

    def show(self):
        print(f"{'programs':<34} {'mode':<10} {'of one after the other':>22} {'of runs':>14} "
              f"{'n':>2}   multiprocessors")
        for (names, mode), rows in self.found.items():
            parts = [part for part, _ in rows]
            print(f"{' '.join(names):<34} {mode:<10} {median(parts):>22.3f} {spread(parts):>14} "
                  f"{len(parts):>2}   {next((used for _, used in rows if used), '')}")


class Headroom:
    """The service may run anywhere, the neighbour on what is not kept free: fifo, the neighbour on a part."""
    NEIGHBOURS = ("md5_hash", "stencil3d", "pointer_chase")   # bound by computing, by bandwidth, by latency
    # by blocks of a request: two to each multiprocessor, or a few
    FREE = {264: (0, 16, 32, 64, 80, 96, 112, 124), 16: (0, 8, 16, 32, 64)}
    REQUESTS = ["120", "2000", "20000", "times"]

    def __init__(self, stage):
        self.stage, self.found, self.alone = stage, {}, {}

    def service(self, mode, blocks):
        requests = ["8", "100", "20", "times"] if self.stage.simulated else [*self.REQUESTS, str(blocks)]
        child = self.stage.child([self.stage.options.arrivals, *requests], mode,
                                 tenant="service", urgent=True)
        done = child.finish()
        self.stage.wrong += done["rc"] != 0
        return {"times_ms": numbers(TIMES, done["out"]), "ends_s": numbers(ENDS, done["out"])}

    def measure(self, end):
        stage = self.stage
        for name in self.NEIGHBOURS:
            stage.measure_alone(name)
        stage.choose("fifo")
        for blocks in self.FREE:
            self.service("fifo", blocks)
            self.alone[blocks] = self.service("fifo", blocks)["times_ms"][5:]
        for turn in range(min(3, stage.options.rounds)):
            for blocks, numbers_free in self.FREE.items():
                for name in self.NEIGHBOURS:
                    for free in (0, 4) if stage.simulated else (*numbers_free, "priority"):
                        if time.monotonic() > end:
                            return
                        self.one(blocks, name, free, turn)

    def one(self, blocks, name, free, turn):
        stage = self.stage
        mode = "priority" if free == "priority" else "one-context"
        stage.choose(mode)
        count = 132 - free if free and free != "priority" and not stage.simulated else 0
        back = stage.start(name, max(30, int(0.9 * stage.alone[name])) if not stage.simulated else 6,
                           mode, sms=count)
        time.sleep(0.35)   # until it computes; what it does before and after is not counted
        front = self.service(mode, blocks)
        behind = stage.finish(name, back)
        stage.lines.add(part="headroom", blocks=blocks, neighbour=name, free=free, round=turn,
                        front=front, behind=behind)
        if not behind["ends_s"] or not front["ends_s"]:
            return
        last = behind["ends_s"][-1]
        first = behind["ends_s"][0]
        times = [ms for ms, at in zip(front["times_ms"], front["ends_s"]) if first < at < last]
        beside = [ms for ms, at in zip(behind["times_ms"], behind["ends_s"])
                  if front["ends_s"][0] < at < front["ends_s"][-1]]
        self.found.setdefault((blocks, name, free), []).append((times, beside))

    def show(self):
        for blocks, times in self.alone.items():
            print(f"service of {blocks} blocks alone: p50 {median(times):.4f} ms, p99 "
                  f"{quantile(times, .99):.4f} of {len(times)}; wanted: p99 below "
                  f"{1.5 * quantile(times, .99):.4f}")
        print(f"{'blocks':>6} {'neighbour':<16} {'left free':>9} {'p50 ms':>8} {'p99 ms':>8} "
              f"{'p99 to alone':>12} {'enough':>6} {'neighbour ms':>12} {'of alone':>8} {'n':>4} {'runs':>4}")
        for (blocks, name, free), rows in self.found.items():
            times, beside = [t for row, _ in rows for t in row], [t for _, row in rows for t in row]
            if not times or not beside:
                continue
            p99, alone, own = quantile(times,
                                       .99), quantile(self.alone[blocks], .99), 1e3 / self.stage.alone[name]
            print(f"{blocks:>6} {name:<16} {free:>9} {median(times):>8.4f} {p99:>8.4f} {p99 / alone:>12.2f} "
                  f"{'yes' if p99 <= 1.5 * alone else 'no':>6} "
                  f"{median(beside):>12.3f} {median(beside) / own:>8.3f} {len(times):>4} {len(rows):>4}")
