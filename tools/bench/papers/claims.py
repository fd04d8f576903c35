#!/usr/bin/env python3
"""Claims for tools/bench/results.json of what papers.py, schedules.py or pair_study.py measured:

    claims.py OUT... --run NAME --commit C --machine M --raw PLACE [--note N] [--write]

prints the run and its claims, a line each. --write puts them into results.json, in place of those with the
same names; tools/bench/report.py then writes the pages. Rows of several folders are taken together.
"""
import argparse
import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "harness"), str(HERE.parent / "corun")]
import results_file  # noqa: E402
from behind_claims import of_behind  # noqa: E402
from experiments import faster, longer, off_weights  # noqa: E402
from metrics import antt, eyerman_stp  # noqa: E402
from model_claims import of_models  # noqa: E402
from report import slug  # noqa: E402
from results_file import between, ordered, rounded  # noqa: E402
import workloads  # noqa: E402
from summary import LATE_S, by_group, mean_of, medians, ratios, small_slower  # noqa: E402

HOME = {"title": "The papers’ evaluations by one harness",
        "text": ["Pairs, triples and queues of the four papers’ programs, and some that nothing was tuned "
                 "on, all by tools/bench/papers. Makespan STP is the time of all launches alone over the "
                 "time from the first begin to the last end; Eyerman’s STP is the sum of all programs’ "
                 "progress, ANTT the mean of its inverse. [papers.md](papers.md) has the papers’ figures "
                 "beside these."]}
BASELINES = {"mps": "MPS", "time-sliced": "time-slicing", "greedy": "greedy",
             "fifo": "fifo"}
SCHEDULED = {"slice": "slice", "slice-measured": "slice by measured pairs", "mps": "MPS"}
METRICS = {"makespan_stp": ("makespan", "Makespan STP", "of one after the other", "higher"),
           "eyerman_stp": ("eyerman", "Eyerman’s STP", "of one after the other", "higher"),
           "antt": ("antt", "ANTT", "times", "lower")}
# Groups by the policy that they are for, and what they are; "mixes" and "compact" begin those of a workload.
GROUPS = {
    "fifteen pairs": ("greedy", "the fifteen pairs of Adaptive Simultaneous Multi-tenancy’s figure 10"),
    "pairs of high utilisation": ("greedy", "the six pairs of its figure 11, of high issue slot utilisation"),
    "small ones first": ("hpf", "FLEP’s pairs, small launches of high priority behind large ones"),
    "small ones as equals": ("hpf=", "FLEP’s pairs, small launches behind large ones, as equals"),
    "triples": ("hpf=", "triples of FLEP’s programs, two small launches behind a large one"),
    "drawn": ("greedy", "pairs drawn by a seed, without those that policies were tuned on"),
    "queues": ("slice", "queues of four programs drawn by a seed")}


def group_of(name):
    if name in GROUPS:
        return GROUPS[name]
    part, _, workload = name.partition(" ")
    return {"mixes": ("slice", f"Kernelet’s mix {workload}, launches arriving as a Poisson process"),
            "compact": ("compact", f"smCompactor’s {workload.replace('+', ' + ')}")}[part]


def one_mode(of_mode, metric):
    """value, low and high of a mode: over workloads, or of a single one over its runs."""
    if len(of_mode) == 1:
        values = [row["figures"][metric] for row in next(iter(of_mode.values()))]
        return {**between(statistics.median(values), min(values), max(values))}
    each = medians(of_mode, lambda found: found[metric]).values()
    return {**between(mean_of(metric, each), min(each), max(each))}


def of_metric(group, modes, metric, run):
    policy, words = group_of(group)
    mine = modes.get(policy)
    if not mine:
        return
    name, title, unit, better = METRICS[metric]
    many, baselines = len(mine) > 1, []
    for mode, called in BASELINES.items():
        other = {name: rows for name, rows in modes.get(mode, {}).items() if name in mine}
        if mode != policy and other:
            of = {} if len(other) == len(mine) else {"of": f"{len(other)} of these workloads"}
            baselines.append({"name": called, **one_mode(other, metric), **of})
    runs = sum(map(len, mine.values()))
    statistic = ("arithmetic mean" if metric == "antt" else "geometric mean") if many else "median"
    yield {"id": slug(f"papers-{group}-{name}"), "run": run,
           "claim": f"{title} of {words}, under {policy.rstrip('=')}", **one_mode(mine, metric),
           "statistic": statistic, "n": len(mine) if many else runs,
           "of": f"workloads, medians of {runs} runs in all" if many else "runs",
           "spread": "smallest and largest workload" if many else "min and max", "unit": unit,
           "better": better, **({"baselines": baselines} if baselines else {})}


def of_ratio(group, modes, name, words, figure, run):
    policy, whose = group_of(group)
    found = ratios(modes, policy, "mps", figure)
    if not found:
        return
    yield {"id": slug(f"papers-{group}-{name}"), "run": run,
           "claim": f"{words} under MPS, to that under hpf: {whose}",
           **between(statistics.fmean(found.values()), min(found.values()), max(found.values())),
           "statistic": "arithmetic mean", "n": len(found), "of": "workloads, medians of runs",
           "spread": "smallest and largest workload", "unit": "times", "better": "higher",
           "baselines": [{"name": "geometric mean",
                          "value": rounded(statistics.geometric_mean(found.values()))}]}


def of_gain(group, modes, run):
    """Makespan STP to that under MPS, and the pairs for which MPS is better."""
    policy, whose = group_of(group)
    found = {name: 1 / value for name, value in
             ratios(modes, policy, "mps", lambda figures: figures["makespan_stp"]).items()}
    if found:
        below = sorted((value, name) for name, value in found.items() if value < 1)
        yield {"id": slug(f"papers-{group}-to-mps"), "run": run,
               "claim": f"Makespan STP under {policy}, to that under MPS: {whose}",
               **between(statistics.geometric_mean(found.values()), min(found.values()), max(found.values())),
               "statistic": "geometric mean", "n": len(found), "of": "workloads, medians of runs",
               "spread": "smallest and largest workload", "unit": "times", "better": "higher",
               **({"baselines": [{"name": name.replace("+", " + "), "value": rounded(value)}
                                 for value, name in below]} if below else {})}


def of_lost(group, modes, run):
    """Per cent of Eyerman's STP under MPS."""
    found = ratios(modes, group_of(group)[0], "mps", lambda figures: figures["eyerman_stp"])
    lost = [100 * (1 - 1 / mps_to_mine) for mps_to_mine in found.values()]
    if lost:
        yield {"id": slug(f"papers-{group}-stp-lost"), "run": run,
               "claim": f"Eyerman’s STP under hpf, less than under MPS: {group_of(group)[1]}",
               **between(statistics.fmean(lost), min(lost), max(lost)), "statistic": "arithmetic mean",
               "n": len(lost), "of": "workloads, medians of runs", "spread": "smallest and largest workload",
               "unit": "%", "better": "lower"}


def of_places(lines, run):
    """Multiprocessors that programs had together under compact."""
    for row in lines:
        used = row.get("multiprocessors")
        if used:
            names = row["workload"].replace("+", " + ")
            yield {"id": slug(f"papers-compact-{row['workload']}-sms"), "run": run,
                   "claim": f"Multiprocessors, of 132, that {names} have under compact",
                   "value": used["any"], "statistic": "median", "n": 1, "of": "run, at the median instant",
                   "unit": "of 132", "better": "neither"}


def of_slices(lines, run):
    """What slices of each size cost."""
    for mode, found in longer(lines).items():
        each = list(found.values())
        if each:
            how = ("with quotas, and without slices" if mode == "quotas" else
                   f"in slices of {mode} block{'s' * (mode != '1')} for each multiprocessor")
            yield {"id": slug(f"papers-slices-{mode}"), "run": run,
                   "claim": f"Kernelet’s programs alone, longer than as they are: {how}",
                   **between(statistics.fmean(each), min(each), max(each)),
                   "statistic": "arithmetic mean", "n": len(each), "of": "programs, medians of runs",
                   "spread": "smallest and largest program", "unit": "%", "better": "lower"}


def of_weights(lines, run):
    """By how much parts are off under fair."""
    for count, found in off_weights(lines).items():
        each, called = list(found.values()), {2: "pairs", 3: "triples"}[count]
        weights = ":".join(map(str, workloads.WEIGHTS[count]))
        within = sum(off <= 0.05 for off in each)
        yield {"id": slug(f"papers-weights-{called}"), "run": run,
               "claim": f"FLEP’s programs at {weights} under fair, {called}: by how much of its weight the "
                        f"progress of a program is off, the one that is off most; {within} of {len(each)} "
                        "are off by 0.05 at most",
               **between(statistics.median(each), min(each), max(each)), "statistic": "median",
               "n": len(each), "of": "workloads", "spread": "smallest and largest workload", "unit": "times",
               "better": "lower"}


def of_more_sms(lines, run):
    for more, found in faster(lines).items():
        each = list(found.values())
        if each:
            yield {"id": slug(f"papers-more-sms-{more}"), "run": run,
                   "claim": f"Small launches of high priority behind large ones under hpf, with {more} "
                            "multiprocessors more than just enough: faster than with just enough",
                   **between(statistics.fmean(each), min(each), max(each)),
                   "statistic": "arithmetic mean", "n": len(each), "of": "pairs, medians of runs",
                   "spread": "smallest and largest pair", "unit": "times", "better": "higher"}


def of_schedules(lines, run):
    """Kernelet's figure 14: random schedules beside slice's and OPT's."""
    # Of one mix, as each claim has one name, and papers.json is about this one.
    rows = [row for row in lines if row.get("part") == "schedules" and row["mix"] == "MIX"]
    same = {"run": run, "statistic": "median", "spread": "min and max", "unit": "of one after the other",
            "better": "neither"}
    share = {"run": run, "statistic": "share", "unit": "%", "better": "lower"}
    for row in (row for row in rows if row["kind"] == "assembled"):
        times, mix = row["times"], row["mix"]
        yield {**same, "id": "papers-random-schedules", "n": len(times), "of": "schedules",
               "claim": f"Random schedules of Kernelet’s mix {mix}, put together from rates of pairs",
               **between(statistics.median(times), min(times), max(times)),
               "baselines": [{"name": name, "value": rounded(row[name])} for name in ("slice", "OPT")
                             if name in row]}
        if "slice" in row:
            yield {**share, "id": "papers-random-schedules-better", "n": len(times), "of": "schedules",
                   "claim": f"Random schedules of {mix} that are better than slice’s, put together likewise",
                   "value": rounded(100 * sum(time < row["slice"] for time in times) / len(times))}
    yield from of_measured_schedules(rows, same, share)


def of_measured_schedules(rows, same, share):
    runs = [row for row in rows if row["kind"] == "run" and row["time"] and row["late_s"] <= LATE_S]
    random = [row for row in runs if "draw" in row]
    if not random:
        return
    times, of = [row["time"] for row in random], {"n": len(random), "of": "schedules, a run each"}
    medians = {mode: statistics.median(row["time"] for row in runs if row["mode"] == mode)
               for mode in SCHEDULED if any(row["mode"] == mode for row in runs)}
    mix = random[0]["mix"]
    yield {**same, **of, "id": "papers-random-schedules-measured",
           "claim": f"Random schedules of Kernelet’s mix {mix}, run",
           **between(statistics.median(times), min(times), max(times)),
           "baselines": [{"name": SCHEDULED[mode], "value": rounded(value)}
                         for mode, value in medians.items()]}
    if "slice" in medians:
        mine = [row["time"] for row in runs if row["mode"] == "slice"]
        yield {**same, "id": "papers-schedules-slice", "n": len(mine), "of": "runs",
               "claim": f"Kernelet’s mix {mix}, all programs at once under slice", "better": "lower",
               **between(medians["slice"], min(mine), max(mine)),
               "baselines": [{"name": SCHEDULED[mode], "value": rounded(value)}
                             for mode, value in medians.items() if mode != "slice"]}
        yield {**share, **of, "id": "papers-random-schedules-measured-better",
               "claim": f"Random schedules of {mix} that are better than slice’s median, run",
               "value": rounded(100 * sum(time < medians["slice"] for time in times) / len(times))}
    off = [abs(row["assembled"] - row["time"]) for row in random]
    yield {**same, **of, "id": "papers-random-schedules-off", "statistic": "mean of absolute errors",
           "claim": "What is put together from measured pairs, off the time of the same schedule as it runs",
           **between(statistics.fmean(off), min(off), max(off)), "better": "lower"}


def claims_of(lines, run):
    groups, found = by_group(lines), []
    for group, modes in groups.items():
        for metric in METRICS:
            found += of_metric(group, modes, metric, run)
    for group in ("fifteen pairs", "pairs of high utilisation", "drawn", "queues"):
        found += of_gain(group, groups.get(group, {}), run)
    for group in ("small ones first", "small ones as equals", "triples"):
        modes = groups.get(group, {})
        found += of_ratio(group, modes, "turnaround", "What small launches take", small_slower, run)
        found += of_ratio(group, modes, "antt-ratio", "ANTT", lambda figures: figures["antt"], run)
        found += of_lost(group, modes, run)
    return [ordered(claim) for claim in [*found, *of_places(lines, run), *of_slices(lines, run),
                                         *of_more_sms(lines, run), *of_weights(lines, run),
                                      *of_behind(lines, run),
                                      *of_schedules(lines, run), *of_models(lines, run)]]


def studied(rows):
    """Runs of pair_study.py as rows of papers.py's part `compact`."""
    runs = [row for row in rows if row.get("part") == "run"]
    if not runs:
        return
    workload = "+".join(runs[0]["progress"])
    for row in runs:
        each = list(row["progress"].values())
        known = {} if None in each else {"eyerman_stp": eyerman_stp(each), "antt": antt(each)}
        yield {"part": "compact", "workload": workload, **{key: row[key] for key in ("mode", "late_s")},
               "figures": {"makespan_stp": row["stp"], **known}}


def read(folders):
    lines, commands = [], []
    for folder in map(pathlib.Path, folders):
        study = (folder / "pair_study.jsonl").exists()
        name = "pair_study" if study else "papers"
        rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        lines += studied(rows) if study else rows
        commands.append((folder / f"{name}.command").read_text().strip())
    return lines, "; ".join(dict.fromkeys(commands))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    options = results_file.add_options(parser).parse_args()
    try:
        lines, command = read(options.folders)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}; give a folder that papers.py or pair_study.py "
                     "has written")
    return results_file.put(options, HOME, command, claims_of(lines, options.run))


if __name__ == "__main__":
    sys.exit(main())
