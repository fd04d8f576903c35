"""Parts of corun.py: two programs at once."""
import itertools
import re
import statistics
import time

from metrics import antt as antt_of
from printed import CHECKSUM, ENDS, TIMES, numbers, quantile
from stage import Stage

median = statistics.median


def spread(values):
    return f"{min(values):.3f}..{max(values):.3f}"


class Pairs:
    """In every round each pair under each mode; in every other one the second program comes first."""
    FOUR = [("nbody", "vector_add"), ("md5_hash", "stencil3d"), ("pointer_chase", "black_scholes"),
            ("matrix_multiply", "spmv")]
    # Of the seven kernels of Adaptive Simultaneous Multi-tenancy (its table 3) the pairs of its figure 10: of
    # those with low issue slot utilization, and of one such with another; and of its figure 11.
    LOW, HIGH = ("fdtd3d", "particle_filter", "tpacf"), ("binomial_options", "lavamd", "md5_hash", "nbody")
    PAIRS = {"four": FOUR, "paper": [*itertools.combinations(LOW, 2), *itertools.product(HIGH, LOW)],
             "high": [*itertools.combinations(HIGH, 2)]}
    MODES = ["time-sliced", "mps", "mps-percent", "one-context", "fifo", "greedy", "compact"]

    def __init__(self, stage):
        self.stage, self.found, self.makespans = stage, {}, {}

    def measure(self, end):
        stage = self.stage
        modes = stage.options.modes.split(",") if stage.options.modes else self.MODES
        pairs = [pair for pair in self.PAIRS[stage.options.pairs]
                 if re.search(stage.options.select, " ".join(pair))]
        for name in dict.fromkeys(sum(pairs, ())) if stage.options.sweep else []:
            stage.profile(name, "--sweep", "--runs", "1")
        for turn in range(stage.options.rounds):
            for pair in pairs:
                for name in pair:
                    stage.measure_alone(name)
                for mode in modes if turn % 2 == 0 else modes[::-1]:
                    if time.monotonic() > end:
                        return
                    names = pair if turn % 2 == 0 else pair[::-1]
                    rows = stage.together(names, mode)
                    stage.lines.add(part="pairs", mode=mode, round=turn, programs=rows)
                    rates = stage.rates(rows)
                    if rates:
                        self.found.setdefault((pair, mode), []).append(rates if turn % 2 == 0
                                                                       else rates[::-1])
                        self.makespans.setdefault((pair, mode), []).append(stage.makespan_speedup(rows))

    def show(self):
        print(f"{'pair':<30} {'mode':<12} {'weighted':>8} {'of runs':>14} {'makespan':>8} {'of runs':>14} "
              f"{'ANTT':>6} {'of runs':>14} {'each':>13} {'n':>2}")
        for (pair, mode), rates in self.found.items():
            weighted, makespan = [sum(each) for each in rates], self.makespans[pair, mode]
            antt = [antt_of(each) for each in rates]
            each = " ".join(f"{median(r[i] for r in rates):6.3f}" for i in range(2))
            print(f"{' + '.join(pair):<30} {mode:<12} {median(weighted):>8.3f} {spread(weighted):>14} "
                  f"{median(makespan):>8.3f} {spread(makespan):>14} {median(antt):>6.2f} {spread(antt):>14} "
                  f"{each:>13} {len(rates):>2}")
        for mode in dict.fromkeys(mode for _, mode in self.found):
            weighted = self.mean(mode,
                                 {key: [sum(each) for each in rates] for key, rates in self.found.items()})
            print(f"{mode:<12} geometric means over pairs: weighted speedup {weighted:.3f}, "
                  f"makespan speedup {self.mean(mode, self.makespans):.3f}")

    @staticmethod
    def mean(mode, speedups):
        """The geometric mean over pairs of the medians of their runs."""
        medians = [median(runs) for (_, of), runs in speedups.items() if of == mode]
        return statistics.geometric_mean(max(1e-9, each) for each in medians)


class Priority:
    PAIRS = [("vector_add", "black_scholes"), ("arrivals", "md5_hash"), ("nearest_neighbour", "nbody"),
             ("few blocks", "md5_hash"), ("seldom", "md5_hash"), ("few blocks", "stencil3d")]
    # Of arrivals: requests, us between, rounds of each, blocks.
    REQUESTS = {"arrivals": ["100", "3000", "20000", "times", "264"],
                "few blocks": ["100", "3000", "20000", "times", "16"],
                "seldom": ["12", "110000", "20000", "times", "16"]}
    LONGER = {"seldom": 4}   # the large one is at work for so many times as long
    # =: as equals
    MODES = ["time-sliced", "mps", "mps-priority", "mps-percent", "one-context", "priority",
             "hpf", "hpf-whole", "hpf="]
    HEAD_START = 0.4

    def __init__(self, stage):
        self.stage, self.rows, self.pairs = stage, [], []
        self.small_ms, self.needs_ms, self.served_ms = {}, {}, {}

    def start_small(self, name, mode, urgent):
        if name in self.REQUESTS:
            requests = ["8", "100", "20", "times"] if self.stage.simulated else self.REQUESTS[name]
            return self.stage.child([self.stage.options.arrivals, *requests], mode, tenant=name,
                                    urgent=urgent, percent=100)
        return self.stage.start(name, self.stage.options.launches, mode, size="small"
                                if not self.stage.simulated else "trivial", urgent=urgent, percent=100)

    def finish_small(self, name, child):
        if name not in self.REQUESTS:
            return self.stage.finish(name, child, "small" if not self.stage.simulated else "trivial")
        done = child.finish()
        self.stage.wrong += done["rc"] != 0
        return {"program": name, "ok": done["rc"] == 0, "times_ms": numbers(TIMES, done["out"]),
                "ends_s": numbers(ENDS, done["out"])}

    def measure(self, end):
        stage = self.stage
        modes = stage.options.modes.split(",") if stage.options.modes else self.MODES
        self.pairs = [pair for pair in self.PAIRS if re.search(stage.options.select, " ".join(pair))]
        for small, large in self.pairs:
            stage.measure_alone(large)
            # the first is where it is compiled
            for mode, needs in (("fifo", self.served_ms), ("alone", self.needs_ms), ("fifo", self.served_ms)):
                row = self.finish_small(small, self.start_small(small, mode, False))
                own_ms = median(row["times_ms"][2:])
                if mode == "alone":
                    self.small_ms[small] = own_ms
                ends = row["ends_s"][2:]
                # A request has its pauses; a program that launches again at once needs the GPU from one
                # launch's end to the next one's.
                needs[small] = (own_ms if small in self.REQUESTS or
                                len(ends) < 2 else 1e3 * (ends[-1] - ends[0]) / (len(ends) - 1))
                stage.lines.add(part="priority-alone", mode=mode, **row)
        for turn in range(stage.options.rounds):
            for mode in modes if turn % 2 == 0 else modes[::-1]:
                for small, large in self.pairs:
                    if time.monotonic() < end:
                        self.rows.append(self.pair(small, large, mode, turn))

    def pair(self, small, large, mode, turn):
        stage, plain = self.stage, mode.rstrip("=")
        stage.choose(plain)
        back = stage.start(large, self.LONGER.get(small, 1) * max(40, int(0.95 * stage.alone[large]))
                           if not stage.simulated else 10, plain, percent=75)
        # until it computes, mostly; what it does before and after is not counted
        time.sleep(self.HEAD_START)
        front = self.finish_small(small, self.start_small(small, plain, plain == mode))
        behind = stage.finish(large, back)
        return stage.lines.add(part="priority", small=small, large=large, mode=mode, round=turn,
                               front=front, behind=behind)

    @staticmethod
    def beside(row):
        """Launches of the small one while the large one worked; of the large one while the small one did,
        each with how many of those it met; and by itself."""
        front, behind = row["front"], row["behind"]
        if not front["ends_s"] or not behind["ends_s"]:
            return [], [], []
        begins = lambda of: [end - ms / 1e3 for end, ms in zip(of["ends_s"], of["times_ms"])]
        first, last = begins(behind)[0], behind["ends_s"][-1]
        mine = [ms for begin, end, ms in zip(begins(front), front["ends_s"], front["times_ms"])
                if begin > first and end < last]
        first, last = begins(front)[0], front["ends_s"][-1]
        requests = list(zip(begins(front), front["ends_s"]))
        beside, alone = [], []
        for begin, end, ms in zip(begins(behind), behind["ends_s"], behind["times_ms"]):
            if begin < last and end > first:
                beside.append((sum(start < end and stop > begin for start, stop in requests), ms))
            else:
                alone.append(ms)
        return mine, beside, alone

    @staticmethod
    def by_met(beside):
        """What a request costs a launch, apart from what it costs to be one that can be stopped: that, those
        that met none have, too."""
        times = {}
        for met, ms in beside:
            times.setdefault(met, []).append(ms)
        return ", ".join(f"{met}: {median(ms):.3f} ({len(ms)})" for met, ms in sorted(times.items())
                         if len(ms) > 9)

    def show(self):
        """lost: what the large one's launches took longer for each of the small one's; mostly: by the median
        of its launches, which leaves out the first ones; beyond: what was lost, less what the small one's
        take alone, of the large one's time; wall: less what they take alone with the pauses between them;
        served: less that of the small one alone in a server"""
        print(f"{'small':<18} {'behind':<14} {'mode':<12} {'p50 ms':>8} {'of rounds':>16} {'p99 ms':>8} "
              f"{'to MPS':>7} {'ANTT':>6} {'lost ms':>8} {'mostly':>8} {'beyond %':>8} {'wall %':>7} "
              f"{'served %':>8} {'n':>5} {'rounds':>6}")
        for small, large in self.pairs:
            of_mode = {}
            for row in self.rows:
                if (row["small"], row["large"]) == (small, large):
                    of_mode.setdefault(row["mode"], []).append(self.beside(row))
            baseline = median([ms for mine, _, _ in of_mode["mps"]
                               for ms in mine] or [float("nan")]) if "mps" in of_mode else float("nan")
            usual = median([ms for rows in of_mode.values() for _, _, alone in rows for ms in alone] or
                           [float("nan")])
            print(f"{small:<18} {'alone':<14} {'':<12} {self.small_ms.get(small, float('nan')):>8.4f}   from "
                  f"one to the next {self.needs_ms.get(small, float('nan')):.4f}, in a server "
                  f"{self.served_ms.get(small, float('nan')):.4f}; and {large} {usual:.3f} ms")
            met = {}
            for mode, rows in of_mode.items():
                times = [ms for mine, _, _ in rows for ms in mine]
                met[mode] = [launch for _, together, _ in rows for launch in together]
                beside = [ms for _, ms in met[mode]]
                if not times or not beside:
                    print(f"{small:<18} {large:<14} {mode:<12} nothing")
                    continue
                rounds = [median(mine) for mine, _, _ in rows if mine]
                lost = sum(ms - usual for ms in beside) / len(times)
                mostly = (median(beside) - usual) * len(beside) / len(times)
                beyond, wall, served = (100 * (lost - own[small]) * len(times) / sum(beside)
                                        for own in (self.small_ms, self.needs_ms, self.served_ms))
                antt = (median(times) / self.small_ms[small] + statistics.mean(beside) / usual) / 2
                print(f"{small:<18} {large:<14} {mode:<12} {median(times):>8.4f} "
                      f"{min(rounds):>7.4f}..{max(rounds):<7.4f} {quantile(times, .99):>8.4f} "
                      f"{baseline / median(times):>7.2f} {antt:>6.2f} {lost:>8.3f} {mostly:>8.3f} "
                      f"{beyond:>8.1f} {wall:>7.1f} {served:>8.1f} {len(times):>5} {len(rows):>6}")
            for mode, launches in met.items():
                print(f"   {mode:<12} median ms of {large}'s launches, by how many they met (so many "
                      f"launches): {self.by_met(launches) or 'too few'}")


class Shares:
    PROGRAMS, WEIGHTS = ("black_scholes", "spmv"), (1, 2, 3)

    def __init__(self, stage):
        self.stage, self.found = stage, {}

    def measure(self, end):
        for turn in range(self.stage.options.rounds):
            for name in self.PROGRAMS:
                self.stage.measure_alone(name)
                for weight in self.WEIGHTS:
                    if time.monotonic() > end:
                        return
                    weights = (weight, 1) if turn % 2 == 0 else (1, weight)
                    rows = self.stage.together((name, name), "fair", weights=weights)
                    self.stage.lines.add(part="shares", weights=weights, round=turn, programs=rows)
                    rates = self.stage.rates(rows)
                    if rates:
                        self.found.setdefault((name, weight), []).append(rates if turn % 2 == 0
                                                                         else rates[::-1])

    def show(self):
        print(f"{'program':<16} {'weights':>8} {'ratio':>7} {'of runs':>14} {'overhead':>9} {'of runs':>16} "
              f"{'n':>2}   (1 less what both get done; max_overhead is 0.10)")
        for (name, weight), rates in self.found.items():
            ratios, lost = [a / max(b, 1e-3) for a, b in rates], [1 - a - b for a, b in rates]
            print(f"{name:<16} {weight:>6}:1 {median(ratios):>7.3f} {spread(ratios):>14} "
                  f"{median(lost):>9.3f} {spread(lost):>16} {len(rates):>2}")


class Starts:
    DEEP = [("mri_q", 150), ("binomial_options", 350)]   # and launches for some three seconds
    # a policy may have a limit ahead, in ms, and a server for it: priority:0
    MODES = ["alone", "time-sliced", "mps", "fifo", "priority"]

    def __init__(self, stage):
        self.stage, self.found = stage, {}

    def measure(self, end):
        modes = self.stage.options.modes.split(",") if self.stage.options.modes else self.MODES
        for turn in range(self.stage.options.rounds):
            for large, launches in self.DEEP:
                for mode in modes:
                    if time.monotonic() < end:
                        self.found.setdefault((large, mode), []).append(
                            self.start_in(large, 4 if self.stage.simulated else launches, mode, turn))

    def start_in(self, large, launches, mode, turn):
        policy, _, ahead = mode.partition(":")
        if not ahead:
            return self.start_beside(self.stage, large, launches, mode, turn)
        with Stage(self.stage.options, f"starts-ahead-{ahead}-{turn}-{large}.jsonl",
                   SMT_LIMITS=f"ahead={ahead}") as own:
            row = self.start_beside(own, large, launches, policy, turn)
            self.stage.wrong += own.wrong
        return self.stage.lines.add(**{**row, "mode": mode})

    def start_beside(self, stage, large, launches, mode, turn):
        size = "trivial" if stage.simulated else "small"
        small = lambda: stage.start("vector_add", 20, mode, size=size, urgent=True)
        stage.choose(mode)
        # once before: forms are compiled and servers started only once, and not what is asked for here
        small().finish()
        # Without --times it launches all of them and then waits.
        command = [f"{stage.options.programs}/{large}", "--size", stage.size, "--iterations", str(launches)]
        back = None if mode == "alone" else stage.child(command, mode, tenant=large)
        time.sleep(0.2 if stage.simulated else 2)   # until it computes; measured, not asserted
        row = stage.finish("vector_add", small(), size)
        behind = back.finish() if back else {"seconds": 0.0, "rc": 0, "out": ""}
        checksum = CHECKSUM.search(behind["out"])
        ok = behind["rc"] == 0 and (not back or checksum and
                                    checksum[1] == stage.checksums[large, stage.size])
        stage.wrong += not ok
        return stage.lines.add(part="starts", large=large, mode=mode, round=turn, ok=bool(ok),
                               small_s=row["seconds"], large_s=behind["seconds"])

    def show(self):
        print(f"{'vector_add beside':<20} {'mode':<12} {'seconds, median':>15} {'most':>8} {'large s':>8} "
              f"{'n':>3}")
        for (large, mode), rows in self.found.items():
            small = [row["small_s"] for row in rows]
            print(f"{large:<20} {mode:<12} {median(small):>15.3f} {max(small):>8.3f} "
                  f"{median(row['large_s'] for row in rows):>8.3f} {len(rows):>3}")
