#!/usr/bin/env python3
"""smt profile on a GPU. One JSON line a row, a table at the end; figures are for people to judge. Exit code 0
when every run went through.

  sweep      each example at size large: resources, PUR, MUR, issue slots, time against CTAs on each SM,
             saturation, cost of a stop; the models' instructions a cycle against those counted, and stops as
             predicted against those measured
  sizes      the same programs at other sizes, and at parts of them, times alone: how far off the model of
             duration is on a size that it was not fitted to
  ncu        what ncu counts of some of them, natively, against ours
  online     throughput with profiles kept and without, interleaved
"""
import argparse
import csv
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from harness import Lines, Places, Runtime, base_environment, run, tail  # noqa: E402
from printed import CHECKSUM  # noqa: E402

# Compute, shared memory, streaming, stencil, gather: and one with several kernels.
WITH_NCU = ["matrix_multiply", "nbody", "vector_add", "stencil3d", "spmv", "cfd", "black_scholes"]
NCU_METRICS = {"instructions": "smsp__inst_executed.sum", "dram_reads": "dram__sectors_read.sum",
               "dram_writes": "dram__sectors_write.sum", "l2": "lts__t_sectors.sum",
               "ns": "gpu__time_duration.sum"}
# A launch of few or long blocks is a single sample, and a plan has two for each number of CTAs that fits, and
# seven: so many launches for those that fit many, fewer of those that take tens of milliseconds.
ITERATIONS = {"sad": 75, "tea": 45, "string_match": 45, "binomial_options": 45, "black_scholes": 45,
              "particle_filter": 30, "md5_hash": 30, "mri_q": 30,
              "nbody": 30, "lavamd": 30, "matrix_multiply": 30, "tpacf": 20, "pointer_chase": 30}
ONLINE = [("vector_add", "small", 3000), ("matrix_multiply", "small", 700), ("nbody", "trivial", 3000)]


def short(name):
    """ncu's name of a kernel, as smt profile has it."""
    name = re.sub(r"\(anonymous namespace\)", "@", name).split("(")[0].replace("@", "(anonymous namespace)")
    return (name.split("> ")[0] if name.endswith(">") and
            not name.startswith("void ") else re.sub(r"^void ", "", name))


def size_options(size):
    """An example's options for SIZE or SIZE:PART."""
    size, _, part = size.partition(":")
    return ["--size", size, *(["--part", part] if part else [])]


def known_us(row, field):
    return f"{row[field] / 1e3:.1f}" if field in row else "-"


def percent(value):
    return "-" if value is None else f"{100 * value:.1f}"


class Profiles:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.build)
        self.lines = Lines(os.path.join(options.out, "profile.jsonl"))
        self.folder = tempfile.TemporaryDirectory()
        self.store = os.path.abspath(os.path.join(options.out, "profiles.db"))
        self.environment = {**base_environment(), "SMT_PROFILES": self.store,
                            "SMT_CACHE_DIR": os.path.join(self.folder.name, "cache")}
        if options.device == "sim":
            self.environment["SMT_SIM"] = "grace=50"
        self.names = sorted(name for name in os.listdir(options.programs) if re.search(options.select, name))
        self.failed = 0
        self.end = time.monotonic() + options.seconds

    def left(self):
        return self.end - time.monotonic()

    def smt(self, *arguments, timeout=120):
        done = run([self.places.smt, *arguments], self.environment, None, timeout)
        if done["rc"] != 0:
            self.failed += 1
            print(f"smt {' '.join(arguments)}: {done['rc']}\n{tail(done['err'])}", flush=True)
        return done

    def rows(self):
        return json.loads(self.smt("profile", "show", "--json")["out"] or "[]")

    def measure(self, part, name, size, iterations, *options):
        """The rows of kernels that this run has met."""
        before = {self.key(row): row for row in self.rows()}
        device = ["--device", self.options.device] if self.options.device else []
        program = [os.path.join(self.options.programs, name), *size_options(size),
                   "--iterations", str(iterations)]
        done = self.smt("profile", *options, *device, "--", *program)
        fresh = [row for row in self.rows() if before.get(self.key(row)) != row]
        for row in fresh:
            self.lines.add(part=part, program=name, size=size, seconds=done["seconds"], **row)
        self.lines.add(part=f"{part} run", program=name, size=size, seconds=done["seconds"],
                       rc=done["rc"], said=done["err"])
        return fresh

    @staticmethod
    def key(row):
        return row["symbol"], row["image"], tuple(row["block"]), row["grid_class"]

    # ---- parts

    def sweep(self, until):
        self.swept = {}
        for name in self.names:
            if self.left() < until:
                print(f"sweep: no time left for {name}")
                continue
            self.swept[name] = self.measure("sweep", name, self.options.size,
                                            self.options.iterations or ITERATIONS.get(name, 16), "--sweep",
                                            "--runs", str(self.options.runs), "--stops",
                                            str(self.options.stops))
        print(f"\n{'program':<19} {'kernel':<26} {'regs':>4} {'CTAs':>4} {'us':>9} {'PUR':>6} {'MUR':>6} "
              f"{'R_m':>6} {'unco.':>6} {'issue':>6} {'occ.':>5} "
              f"{'IPC':>5} {'model':>5} {'off %':>6} {'told':>5} {'off %':>6} {'saturates':>10} "
              f"{'stop us':>8} {'model':>8}  points  time by CTAs, of the best")
        errors, told, stops = [], [], []
        for name, row in ((name, row) for name in self.names for row in self.swept.get(name, [])):
            off = (row["predicted_ipc"] / row["ipc"] - 1 if row.get("ipc") and
                   row.get("predicted_ipc") else None)
            errors += [abs(off)] if off is not None else []
            off_told = row["told_ipc"] / row["ipc"] - 1 if row.get("ipc") and row.get("told_ipc") else None
            told += [abs(off_told)] if off_told is not None else []
            stop_off = (row["predicted_stop_ns"] / row["stop_ns"] - 1 if row.get("stops", 0) >= 20 and
                        row.get("predicted_stop_ns") else None)
            stops += [abs(stop_off)] if stop_off is not None else []
            most = row.get("most_ctas_per_sm", 0)
            points = (f"{len(row['block_ns_by_ctas'])}/{most} {len(row['block_ns_by_sms'])}/9"
                      if row.get("managed") else "-")
            curve = [each for _, each in row["block_ns_by_ctas"]]
            known = lambda field, form: format(row[field], form) if field in row else "-"
            saturation = "{sms}x{ctas_per_sm}".format(**row["saturation"]) if "saturation" in row else "-"
            stop = f"{row['stop_ns'] / 1e3:.1f}" if "stop_ns" in row else "-"
            time_us = f"{row['launch_ns'] / 1e3:.1f}" if "launch_ns" in row else "-"
            print(f"{name:<19} {row['kernel'][:26]:<26} {row.get('registers', '-'):>4} "
                  f"{row.get('most_ctas_per_sm', '-'):>4} {time_us:>9} "
                  f"{known('pur', '.3f'):>6} {known('mur', '.3f'):>6} {known('memory_ratio', '.3f'):>6} "
                  f"{known('uncoalesced_ratio', '.3f'):>6} "
                  f"{percent(row.get('issue_slot_utilization')):>6} {percent(row.get('occupancy')):>5} "
                  f"{known('ipc', '.2f'):>5} {known('predicted_ipc', '.2f'):>5} "
                  f"{percent(off):>6} {known('told_ipc', '.2f'):>5} {percent(off_told):>6} {saturation:>10} "
                  f"{stop:>8} {known_us(row, 'predicted_stop_ns'):>8}  {points:<10} " +
                  " ".join(f"{each / min(curve):.2f}" for each in curve))
        if errors:
            ipc = [row["ipc"] for rows in self.swept.values() for row in rows if row.get("ipc")]
            guess = [abs(statistics.mean(ipc) / each - 1) for each in ipc]   # knows no kernel
            for what, those in (("Markov model, single kernels", errors), ("told of waits", told),
                                ("the mean of all, for each", guess),
                                ("stops, of 20 and more", stops)):
                if those:
                    print(f"{what}: mean absolute error {100 * statistics.mean(those):.1f} %, median "
                          f"{100 * statistics.median(those):.1f} % of {len(those)}")
                    self.lines.add(part="errors", what=what, kernels=len(those), mean=statistics.mean(those),
                                   median=statistics.median(those))

    def sizes(self, until):
        for size in self.options.sizes.split(","):
            for name in self.names:
                if self.left() < until:
                    print(f"sizes: no time left for {name} {size}")
                    continue
                self.measure("sizes", name, size, self.options.iterations or 8, "--times")
        found = {(row["kernel"], tuple(row["block"]), row["image"]): row for row in self.rows()
                 if "duration_error" in row}
        print("\nduration of a size that the model was not fitted to, % off: mean over all sizes, and over "
              "those whose launches take 100 us or more")
        for (kernel, block, _), row in sorted(found.items()):
            print(f"  {kernel[:50]:<50} {'x'.join(map(str, block)):>10} {percent(row['duration_error']):>8} "
                  f"{percent(row.get('duration_error_long')):>8}")
            self.lines.add(part="duration", kernel=kernel, block=block, error=row["duration_error"],
                           long=row.get("duration_error_long"))
        for what, field in (("all", "duration_error"), ("100 us and more", "duration_error_long")):
            errors = [row[field] for row in found.values() if field in row]
            if errors:
                print(f"  {what}: mean {100 * statistics.mean(errors):.1f} %, median "
                      f"{100 * statistics.median(errors):.1f} % of {len(errors)} kernels")

    def ncu_counts(self, name):
        """By kernel and class of grids: each metric's mean over the launches."""
        metrics = ",".join(NCU_METRICS.values())
        command = ["ncu", "--clock-control", "none", "--cache-control", "none", "--metrics", metrics, "--csv",
                   "--launch-count", "12",
                   os.path.join(self.options.programs, name), "--size", self.options.size,
                   "--iterations", "2"]
        done = run(command, self.environment, None, 60)
        table = done["out"][done["out"].find('"ID"'):] if '"ID"' in done["out"] else ""
        found = {}
        for line in csv.DictReader(table.splitlines()):
            blocks = 1
            for each in re.findall(r"\d+", line["Grid Size"]):
                blocks *= int(each)
            key = short(line["Kernel Name"]), blocks.bit_length() - 1
            found.setdefault(key, {}).setdefault(line["Metric Name"], []).append(
                float(line["Metric Value"].replace(",", "")) / blocks)
        if not found:
            self.failed += 1
            print(f"ncu of {name}: {done['rc']} {tail(done['out'] + done['err'], 400)}")
        return {key: {metric: statistics.mean(values) for metric, values in of.items()}
                for key, of in found.items()}

    def ncu(self, until):
        print("\nour counters against ncu's, for each block of the launches, % off; DRAM and L2 depend on "
              "what the caches held")
        print(f"{'program':<19} {'kernel':<26} {'instructions':>12} {'dram':>7} {'L2':>7} {'time':>7}")
        for name in (name for name in WITH_NCU if name in self.names):
            if self.left() < until or not self.swept.get(name):
                print(f"ncu: no time left for {name}, or it was not counted")
                continue
            theirs = self.ncu_counts(name)
            for row in self.swept[name]:
                counted = theirs.get((row["kernel"], row["grid_class"]))
                if not counted or "counters" not in row:
                    continue
                blocks = row["counters"]["blocks"]
                ours = {"instructions": row["counters"]["instructions"] / blocks,
                        "ns": row["counters"]["ns"] / blocks,
                        "dram": (row["counters"]["dram_reads"] + row["counters"]["dram_writes"]) / blocks,
                        "l2": row["l2_bytes_per_block"] / 32}
                of = {what: counted[metric] for what, metric in NCU_METRICS.items() if metric in counted}
                of["dram"] = of["dram_reads"] + of["dram_writes"]
                off = {what: ours[what] / of[what] - 1 if of[what] else 0 for what in ours}
                print(f"{name:<19} {row['kernel'][:26]:<26} {100 * off['instructions']:>12.2f} "
                      f"{100 * off['dram']:>7.1f} {100 * off['l2']:>7.1f} {100 * off['ns']:>7.1f}",
                      flush=True)
                self.lines.add(part="ncu", program=name, kernel=row["kernel"], grid_class=row["grid_class"],
                               ours=ours, theirs=of, off=off)

    def online(self, until):
        sides = {"kept": self.store + ".online", "none": "none"}
        print("\nonline: seconds of a whole program, with profiles kept and without, interleaved, "
              f"{self.options.rounds} rounds")
        with Runtime(self.places) as kept, Runtime(self.places) as none:
            for name, size, iterations in ONLINE:
                seconds = {side: [] for side in sides}
                for turn in range(self.options.rounds + 1):
                    for side, runtime in (("kept", kept), ("none", none)):
                        if self.left() < until:
                            break
                        variables = {**self.environment, **runtime.variables(SMT_PROFILES=sides[side])}
                        done = run([self.places.smt, "run",
                                    *(["--device", self.options.device] if self.options.device else []), "--",
                                    os.path.join(self.options.programs, name), "--size", size, "--iterations",
                                    str(iterations)], variables, None, 60)
                        ok = done["rc"] == 0 and CHECKSUM.search(done["out"]) is not None
                        self.failed += not ok
                        if turn and ok:   # the first one starts the server
                            seconds[side].append(done["seconds"])
                        self.lines.add(part="online", program=name, size=size, side=side, round=turn,
                                       ok=ok, seconds=done["seconds"])
                if seconds["kept"] and seconds["none"]:
                    medians = {side: statistics.median(values) for side, values in seconds.items()}
                    spread = {side: (max(values) - min(values)) / medians[side]
                              for side, values in seconds.items()}
                    print(f"  {name:<18} {medians['kept']:.4f} kept, {medians['none']:.4f} without: "
                          f"{100 * (medians['kept'] / medians['none'] - 1):+.2f} % "
                          f"(spread {100 * spread['kept']:.1f} %, {100 * spread['none']:.1f} %, "
                          f"{len(seconds['kept'])} runs)", flush=True)
                    self.lines.add(part="online result", program=name, medians=medians, spread=spread)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    build = os.path.join(here, "..", "..", "build")
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=build)
    parser.add_argument("--programs", default=None, help="the examples (build/examples/shared)")
    parser.add_argument("--out", default=".")
    parser.add_argument("--select", default=".", help="examples whose names match")
    parser.add_argument("--parts", default="sweep,ncu,sizes,online")
    parser.add_argument("--seconds", type=float, default=280, help="budget for all parts")
    parser.add_argument("--size", default="large")
    parser.add_argument("--sizes", default="large:0.7,large:0.45,large:0.3,large:0.2,small,small:0.5",
                        help="SIZE or SIZE:PART, as in the examples' --size and --part, with commas")
    parser.add_argument("--iterations", type=int, default=0,
                        help="0: as many as a sweep needs, and eight otherwise")
    parser.add_argument("--stops", type=int, default=50, help="of each kernel; 0: they are not measured")
    parser.add_argument("--runs", type=int, default=3, help="of the sweep and of the stops, at most")
    parser.add_argument("--rounds", type=int, default=4, help="of the part online")
    parser.add_argument("--device", default="", help="sim: a try without a GPU")
    options = parser.parse_args()
    options.programs = options.programs or os.path.join(options.build, "examples", "shared")
    os.makedirs(options.out, exist_ok=True)
    profiles = Profiles(options)
    parts = options.parts.split(",")
    # What each part leaves to those after it.
    reserve = {"sweep": 0.45, "ncu": 0.33, "sizes": 0.12, "online": 0.0}
    profiles.swept = {}
    for part in parts:
        rest = sum(1 for other in parts[parts.index(part) + 1:])
        getattr(profiles, part)(options.seconds * reserve[part] if rest else 0)
        print(f"-- {part}: {profiles.left():.0f} s left", flush=True)
    return 1 if profiles.failed else 0


if __name__ == "__main__":
    sys.exit(main())
