"""Parts of papers.py that fix what a policy chooses by itself: the size of slices, and on how many
multiprocessors an urgent kernel runs; and one that asks whether weights hold."""
import itertools
import statistics

import workloads
from metrics import progress
from parts import LATER_S, Behind, Job, Part, Together, fresh
from summary import LATE_S

SLICES_ONLY = 1 << 30   # in a seed of SMT_STRESS: runtime/dispatch/experiments.h


class Slices(Part):
    """Each program alone, under smt: "whole" as it is, "quotas" with a quota on each multiprocessor, and in
    slices of so many blocks for each multiprocessor. Eight fit there, at least, of every kernel; Kernelet's
    figure 6 has sizes from one to as many as fit."""
    name, SIZES = "slices", (512, 64, 8, 1)
    modes = ("whole", "quotas", *map(str, SIZES))
    FEWEST = 3   # iterations, of which the first one does not count

    def __init__(self, runner, select=""):
        super().__init__(runner, select)
        self.took = {}   # (program, mode): seconds of a launch

    def every(self):
        return {name: (name,) for name in workloads.MIXES["ALL"]}

    def busy_s(self, programs):
        return 4 * self.runner.length   # kernels that fill arrays run in slices, too

    def expected_s(self, name, mode):
        """Of a launch: no longer, because what slices cost grows as their number does at most."""
        whole = self.took.get((name, "whole"), self.runner.launch_s(name))
        if mode in ("whole", "quotas"):
            return whole
        size = int(mode)
        larger = min((each for each in self.SIZES if each >= size and (name, str(each)) in self.took),
                     default=None)
        if larger is None:
            return self.runner.length / self.FEWEST   # not known: few
        return whole + max(0, self.took[name, str(larger)] - whole) * larger / size

    def iterations(self, name, mode):
        if self.runner.stage.simulated:
            return self.FEWEST
        return max(self.FEWEST, min(100, round(self.runner.length / self.expected_s(name, mode))))

    def rows(self, programs, mode, turn):
        stage, name = self.runner.stage, programs[0]
        stage.choose("fifo")
        stress = 0 if mode == "whole" else SLICES_ONLY + (0 if mode == "quotas" else int(mode))
        row = stage.finish(name, stage.start(name, self.iterations(name, mode), "fifo", stress=stress))
        if row["ends_s"]:
            self.took[name, mode] = self.launch_s(row)
        return [row], 0

    @staticmethod
    def launch_s(row):
        """By the host's clock, from one end to the next: each launch is waited for."""
        return statistics.median(end - begin for begin, end in itertools.pairwise(row["ends_s"]))

    def judge(self, rows, programs):
        return {"launch_ms": 1e3 * self.launch_s(rows[0])}


def longer(lines):
    """{mode: {program: per cent that a launch takes longer than whole}}, medians of runs."""
    times = {}
    for row in lines:
        if row.get("part") == Slices.name and row["figures"]:
            times.setdefault(row["mode"], {}).setdefault(row["workload"], []).append(
                row["figures"]["launch_ms"])
    medians = {mode: {name: statistics.median(each) for name, each in of.items()}
               for mode, of in times.items()}
    whole = medians.pop("whole", {})
    return {mode: {name: 100 * (ms / whole[name] - 1) for name, ms in of.items() if name in whole}
            for mode, of in medians.items()}


class MoreSms(Behind):
    """FLEP's figure 16: urgent small launches behind a large program, with so many multiprocessors more than
    just enough (policy hpf+N). At size trivial, as in the paper, nearest_neighbour has 32 blocks and
    molecular_dynamics two. The paper does not name its four pairs."""
    name, size_of_small = "more-sms", False
    modes, later = ("hpf+0", "hpf+2", "hpf+6", "hpf+14", "hpf+30"), ()

    def every(self):
        return {f"{small} behind {large}": (large, small)
                for small in ("nearest_neighbour", "molecular_dynamics") for large in ("cfd", "md5_hash")}

    def modes_of(self, programs, modes):
        return list(modes)

    def busy_s(self, programs):
        return 2 * super().busy_s(programs)

    def jobs(self, programs, mode, turn):
        run, (large, small) = self.runner, programs
        between, window = self.between_s(large), 2 * self.window_s(large)
        return [Job(large, run.iterations(large, 1.3 * window + 0.1)),
                Job(small, run.small_iterations(small, window / between), 1e3 * between, seed=turn + 1,
                    offset_s=0.05, size="trivial", urgent=True)]

    def judge(self, rows, programs):
        large, small = rows
        beside = [(arrival, end) for arrival, end in fresh(small) if end < large["ends_s"][-1]]
        if self.runner.stage.simulated:
            beside = list(zip(small["arrivals_s"], small["ends_s"]))
        times = [1e3 * (end - arrival) for arrival, end in beside]
        return {"turnaround_ms": statistics.median(times)} if len(times) > 1 else {}


def faster(lines):
    """{SMs more: {workload: how many times as long the small launch takes with just enough}}"""
    times = {}
    for row in lines:
        if row.get("part") == MoreSms.name and row["figures"] and row["late_s"] <= LATE_S:
            times.setdefault(row["mode"].partition("+")[2], {}).setdefault(row["workload"], []).append(
                row["figures"]["turnaround_ms"])
    medians = {more: {name: statistics.median(each) for name, each in of.items()}
               for more, of in times.items()}
    enough = medians.pop("0", {})
    return {more: {name: enough[name] / ms for name, ms in of.items() if name in enough}
            for more, of in medians.items()}


class Weights(Together):
    """FLEP's programs under fair with weights: all pairs at 2:1, and the triples of figure 12 at 3:2:1. What
    each gets is its progress, in units of its rate alone, while all work."""
    name, modes, later = "weights", ("fair",), ()

    def every(self):
        pairs = workloads.in_drawn_order(list(itertools.combinations(workloads.FLEP, 2)))
        return {self.called(names): names for names in (*pairs, *workloads.drawn_triples())}

    @staticmethod
    def called(names):
        return " ".join(f"{name}:{weight}" for name, weight in zip(names, workloads.WEIGHTS[len(names)]))

    def jobs(self, programs, mode, turn):
        run = self.runner
        return [Job(name, run.iterations(name, 2 * run.length), offset_s=LATER_S * place, weight=weight)
                for place, (name, weight) in enumerate(zip(programs, workloads.WEIGHTS[len(programs)]))]

    def judge(self, rows, programs):
        each = progress([(row, self.runner.launch_s(row["program"])) for row in rows], self.runner.least_s)
        if not each or not sum(each):
            return {}
        weights = workloads.WEIGHTS[len(programs)]
        parts = [part / sum(each) * sum(weights) / weight for part, weight in zip(each, weights)]
        return {"off": max(abs(part - 1) for part in parts), "sum": sum(each), "parts": parts}


def off_weights(lines):
    """{number of programs: {workload: by how much the part is off that is off most; median of runs}}"""
    runs = {}
    for row in lines:
        if row.get("part") == Weights.name and row["figures"] and row["late_s"] <= LATE_S:
            count = len(row["programs"])
            runs.setdefault(count, {}).setdefault(row["workload"], []).append(row["figures"]["off"])
    return {count: {name: statistics.median(each) for name, each in of.items()} for count, of in runs.items()}


def print_table(lines):
    for count, of in off_weights(lines).items():
        within = sum(off <= 0.05 for off in of.values())
        print(f"{count} programs with weights: the part that is off most is off by "
              f"{statistics.median(of.values()):.3f} in the median, {within} of {len(of)} within 0.05")
        for name, off in sorted(of.items(), key=lambda each: -each[1])[:12]:
            print(f"   {off:.3f}  {name}")
    for more, of in faster(lines).items():
        print(f"{more} multiprocessors more than just enough: " +
              ", ".join(f"{name} {value:.2f} times as fast" for name, value in of.items()))
    found = longer(lines)
    if found:
        print(f"{'% longer than as it is':<24} " + " ".join(f"{mode:>9}" for mode in found))
    for name in dict.fromkeys(name for of in found.values() for name in of):
        print(f"{name:<24} " + " ".join(f"{of[name]:>9.2f}" if name in of else f"{'-':>9}"
                                        for of in found.values()))


PARTS = {part.name: part for part in (Slices, MoreSms, Weights)}
