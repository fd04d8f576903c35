"""Parts of papers.py: which programs run side by side in which modes, and what their rows are worth."""
import itertools
import re
import statistics
import time
from typing import NamedTuple

import workloads
from corun_places import Compact
from metrics import antt, begin_of, eyerman_stp, makespan_stp, progress, progress_until_done, turnarounds

BETWEEN = 2.5   # of a large program's launches, on average, from one small launch to the next
LOAD = 2        # of queues: launches arrive so many times as fast as one after the other could serve them
LATER_S = 0.02  # the second program begins so much behind the first: both orders of arrival are measured
ALONE_MS = 25   # between small launches alone, as between those behind a large one of usual length
LAUNCH_S = 0.01   # of a program that has not been measured, for the plan


class Job(NamedTuple):
    """A program of a co-run: with launches that arrive so far apart, from `offset_s` on; 0: at once."""
    program: str
    iterations: int
    mean_ms: float = 0
    seed: int = 0
    offset_s: float = 0
    size: str = ""   # the stage's
    urgent: bool = False
    weight: float = 1


def figures(runs, each):
    """Both papers' metrics. `each`: the programs' progress."""
    found = {"makespan_stp": makespan_stp(runs)}
    if each:
        found.update(eyerman_stp=eyerman_stp(each), antt=antt(each), progress=each)
    return found


def fresh(row):
    """Arrival and end of launches, without the first one, which costs what is done only once, and without
    those that arrived while their own program's last one was not over."""
    launches = list(zip(row["arrivals_s"], row["ends_s"]))
    return [(arrival, end) for (_, before), (arrival, end) in itertools.pairwise(launches)
            if arrival > before]


def behind(large, large_s, small):
    """Of small launches that arrive while a large program works: what a launch of each takes, in units of
    what it takes alone. small: [(row, seconds of a launch alone)]. None where too few did."""
    first, last = begin_of(large), large["ends_s"][-1]
    beside = [[(arrival, end) for arrival, end in fresh(row) if arrival > first and end < last]
              for row, _ in small]
    if min(map(len, beside)) < 2:
        return None
    intervals = [pair for row, _ in small for pair in zip(row["arrivals_s"], row["ends_s"])]
    met = [end - begin for begin, end in itertools.pairwise(large["ends_s"])
           if any(arrival < end and left > begin for arrival, left in intervals)]
    if not met:
        return None
    slower = [statistics.mean(end - arrival for arrival, end in each) / alone_s
              for each, (_, alone_s) in zip(beside, small)]
    return {"large": statistics.mean(met) / large_s, "small": slower, "launches": sum(map(len, beside))}


class Part:
    """`modes` of every workload, and `later`, once they are through: what a budget may leave out."""
    name, modes, later, swept = None, (), (), ()
    size_of_small = False   # programs run at size small, too
    apart = False           # each workload is a figure: it has a share of the budget of its own

    def __init__(self, runner, select=""):
        """`select`: workloads by a regular expression."""
        self.runner = runner
        self.workloads = {name: programs for name, programs in self.every().items()
                          if re.search(select, name)}

    @classmethod
    def chosen(cls, runner, select):
        """This part, or one for each of its workloads."""
        whole = cls(runner, select)
        return [cls(runner, f"^{re.escape(name)}$") for name in whole.workloads] if cls.apart else [whole]

    @property
    def label(self):
        return f"{self.name} {next(iter(self.workloads))}" if self.apart else self.name

    def every(self):
        """{name: programs}, in the order in which they are measured."""
        raise NotImplementedError

    def modes_of(self, _, modes):
        return modes

    def programs(self):
        return list(dict.fromkeys(itertools.chain(*self.workloads.values())))

    def units(self, turn, modes):
        """(workload, mode) of a round; the order of modes changes from round to round."""
        for name, programs in self.workloads.items():
            of = self.modes_of(programs, modes)
            yield from ((name, mode) for mode in (of if turn % 2 == 0 else of[::-1]))

    def busy_s(self, programs):
        """About how long a co-run computes, for the plan."""
        return 2 * self.runner.length * len(programs) / 1.3

    def jobs(self, programs, mode, turn):
        raise NotImplementedError

    def rows(self, programs, mode, turn):
        """One run: the programs' rows, and by how much one was set up late."""
        return self.runner.corun(self.jobs(programs, mode, turn), mode)

    def judge(self, rows, programs):
        raise NotImplementedError

    def more(self, name, mode, turn):
        """What is asked besides; into the row."""
        return {}


class Together(Part):
    """Programs with as much to do, each launch behind its last: the first program comes first in even rounds,
    and last in odd ones."""

    def jobs(self, programs, mode, turn):
        run = self.runner
        order = programs if turn % 2 == 0 else programs[::-1]
        return [Job(name, run.iterations(name, 2 * run.length), offset_s=LATER_S * place)
                for place, name in enumerate(order)]

    def judge(self, rows, programs):
        runs = [(row, self.runner.launch_s(row["program"])) for row in rows]
        return figures(runs, progress(runs, self.runner.least_s))


class PaperPairs(Together):
    name, modes, later = "pairs", ("greedy", "mps"), ("time-sliced",)
    swept = tuple(dict.fromkeys(itertools.chain(*workloads.LOW_ISU)))

    def every(self):
        pairs = workloads.in_drawn_order(workloads.LOW_ISU + workloads.HIGH_ISU)
        return {"+".join(pair): pair for pair in pairs}


class Compacted(Together):
    name, modes, later = "compact", ("compact", "mps"), ("time-sliced",)
    swept, apart = tuple(dict.fromkeys(itertools.chain(*workloads.COMPACTED))), True

    def every(self):
        return {"+".join(group): group for group in workloads.COMPACTED}

    def more(self, name, mode, turn):
        if mode != "compact" or turn:
            return {}
        return {"multiprocessors": Compact.places(self.runner.stage, self.workloads[name], mode)}


class DrawnPairs(Together):
    name, modes, later = "drawn", ("greedy", "mps"), ("time-sliced",)

    def every(self):
        return {"+".join(pair): pair for pair in workloads.drawn_pairs()}


class Behind(Part):
    """Small launches that arrive at random moments behind those of a large program."""
    name, modes, later = "behind", ("hpf", "hpf=", "mps"), ("time-sliced",)
    size_of_small = True

    def every(self):
        pairs = workloads.in_drawn_order(list(dict.fromkeys(workloads.URGENT + workloads.EQUAL)))
        return {f"{small} behind {large}": (large, small) for small, large in pairs}

    def modes_of(self, programs, modes):
        pair = programs[::-1]
        left = {"hpf": pair in workloads.URGENT, "hpf=": pair in workloads.EQUAL}
        return [mode for mode in modes if left.get(mode, True)]

    def between_s(self, large):
        return max(0.005, BETWEEN * self.runner.launch_s(large))

    def busy_s(self, programs):
        return 1.3 * self.window_s(programs[0])

    def window_s(self, large):
        return max(2 * self.runner.length, 6 * self.between_s(large))

    def jobs(self, programs, mode, turn):
        run, large = self.runner, programs[0]
        between, window = self.between_s(large), self.window_s(large)
        jobs = [Job(large, run.iterations(large, 1.3 * window + 0.1))]
        for name in programs[1:]:   # of one seed: all arrive at the same moments
            jobs.append(Job(name, run.small_iterations(name, window / between), 1e3 * between, seed=turn + 1,
                            offset_s=0.05, size=run.small, urgent=mode == "hpf"))
        return jobs

    def judge(self, rows, programs):
        run = self.runner
        large, *small = rows
        alone = [(row, run.small_s(row["program"])) for row in small]
        runs = [(large, run.launch_s(large["program"])), *alone]
        found = behind(large, runs[0][1], alone)
        each = [1 / max(times, 1e-9) for times in (found["large"], *found["small"])] if found else None
        return {**figures(runs, each), **({"slower": found} if found else {})}


class Triples(Behind):
    name, modes, later = "triples", ("hpf=", "mps"), ()

    def every(self):
        return {f"{large} then {' and '.join(small)}": (large, *small)
                for large, *small in workloads.drawn_triples()}

    def modes_of(self, programs, modes):
        return list(modes)


class Queue(Part):
    """Each program's launches arrive as a Poisson process, all at the same rate and faster than they can be
    served; the time of all one after the other comes with each row."""

    def busy_s(self, programs):
        return self.total_s(programs)

    def total_s(self, programs):
        return 2 * self.runner.length * len(programs)

    def jobs(self, programs, mode, turn):
        run = self.runner
        launches = {name: run.launch_s(name) for name in programs}
        count = self.total_s(programs) / sum(launches.values())
        mean_ms = 1e3 * sum(launches.values()) / LOAD
        return [Job(name, run.iterations(name, count * launches[name]), mean_ms, seed=100 * turn + place)
                for place, name in enumerate(programs)]

    def judge(self, rows, programs):
        runs = [(row, self.runner.launch_s(row["program"])) for row in rows]
        waited = [statistics.mean(turnarounds(row)) for row in rows]
        return {**figures(runs, progress_until_done(runs)), "turnaround_s": waited}


class Mixes(Queue):
    name, modes, later = "mixes", ("slice", "mps"), ("time-sliced",)
    swept, apart = workloads.MIXES["ALL"], True

    def every(self):
        return workloads.MIXES


class DrawnQueues(Queue):
    name, modes, later = "queues", ("slice", "greedy", "mps"), ("time-sliced",)

    def every(self):
        return {"+".join(names): names for names in workloads.drawn_queues()}


PARTS = {part.name: part for part in (PaperPairs, Behind, Triples, Mixes, Compacted, DrawnPairs, DrawnQueues)}


class Runner:
    """What parts need of a stage: programs alone, and several at once that begin together."""

    def __init__(self, stage):
        self.stage, self.length = stage, stage.options.length
        self.small = "trivial" if stage.simulated else "small"
        self.least_s = 0 if stage.simulated else self.length / 4
        self.alone_small = {}   # name: seconds from a launch's arrival to its end
        self.margin_s = 0.2     # beyond the longest set-up: grows where a program was late

    def unknown(self, programs, small):
        """Those that have not been measured alone, and those that have not at size small."""
        return ([name for name in programs if name not in self.stage.alone],
                [name for name in programs if small and name not in self.alone_small])

    def measure(self, programs, small):
        """Programs alone, where that was not done before."""
        for name in programs:
            self.stage.measure_alone(name)
            if small and name not in self.alone_small:
                self.stage.choose("alone")
                child = self.stage.start(name, 6 if self.stage.simulated else 24, "alone", size=self.small,
                                         arrivals=(ALONE_MS, 1, 0))
                row = self.stage.finish(name, child, self.small)
                times = [end - arrival for arrival, end in fresh(row)] if row["ends_s"] else []
                if not times and not self.stage.simulated:
                    raise RuntimeError(f"{name} alone at size {self.small}: none of its launches counts")
                self.alone_small[name] = statistics.mean(times) if times else LAUNCH_S
                self.stage.lines.add(part="alone-small", launch_s=self.alone_small[name], **row)

    def launch_s(self, name):
        return 1 / self.stage.alone[name] if name in self.stage.alone else LAUNCH_S

    def small_s(self, name):
        return self.alone_small.get(name, LAUNCH_S)

    def iterations(self, name, seconds):
        """As many as take so long, alone."""
        laps = self.stage.laps.get(name, 1)
        return 4 if self.stage.simulated else max(4, round(seconds / self.launch_s(name) / laps))

    def small_iterations(self, name, launches):
        return 4 if self.stage.simulated else max(6, round(launches / self.stage.laps.get(name, 1)))

    def corun(self, jobs, mode):
        """Rows of programs that begin together once all are set up."""
        stage, plain = self.stage, mode.rstrip("=")
        stage.choose(plain)
        lead = max(stage.leads.get(job.program, 0) for job in jobs) * (1 + 0.1 * len(jobs)) + self.margin_s
        begin = time.monotonic() + lead
        children = [stage.start(job.program, job.iterations, plain, urgent=job.urgent, weight=job.weight,
                                tenant=f"{'abcdefgh'[place]}-{job.program}", size=job.size or stage.size,
                                arrivals=(job.mean_ms, job.seed, begin + job.offset_s))
                    for place, job in enumerate(jobs)]
        rows = [stage.finish(job.program, child, job.size or stage.size)
                for job, child in zip(jobs, children)]
        late = [row["arrivals_s"][0] - begin - job.offset_s for job, row in zip(jobs, rows)
                if row.get("arrivals_s")]
        if late and max(late) > 0.01:
            self.margin_s = min(3, self.margin_s + max(late))
        return rows, round(max(late, default=0), 4)
