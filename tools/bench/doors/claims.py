#!/usr/bin/env python3
"""Claims for tools/bench/results.json of what stop_times.py, program_stops.py and doors.py measured:

    claims.py OUT... --run NAME --commit C --machine M --raw PLACE [--note N] [--write]

prints the run and its claims, a line each. --write puts them into results.json, in place of those with the
same names; tools/bench/report.py then writes the page. Of several folders that have the same kernel or
program the last one counts; samples of doors.py are taken together.
"""
import argparse
import collections
import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import results_file  # noqa: E402
from report import slug  # noqa: E402
from results_file import between, ordered, rounded  # noqa: E402

HOME = {"title": "Stops of libraries’ kernels and of whole programs",
        "text": ["What a stop takes is the server’s time, from the decision until it has seen that the "
                 "stream is idle (`tools/bench/doors`). A block is measured natively while the GPU is full: "
                 "by the kernel’s own clock, by one wave with a CTA in each place, or by the mean of all "
                 "waves. Of a persistent kernel the block is the whole launch, of which a stop finds a part "
                 "done. GPU time is the server’s estimate, of a program that nothing stops."]}
FILES = ("stop_times", "program_stops", "doors")
BY = {"urgent": "by an urgent tenant", "stress": "at random moments"}
GROUPS = {"own": "Kernels of ours", "persistent": "Persistent kernels of libraries", "other": "Other kernels"}
USED = {   # mode of doors.py: words
    "off": "Models under smt without doors, alone", "idle": "Models with the door under smt, alone",
    "used": "Models that can be stopped at any time: beside an urgent tenant that does nothing, under "
            "priority"}


def read(folders):
    """{file: its rows, of all folders}"""
    rows = collections.defaultdict(list)
    for folder in map(pathlib.Path, folders):
        for name in FILES:
            if (folder / f"{name}.jsonl").exists():
                rows[name] += map(json.loads, (folder / f"{name}.jsonl").read_text().splitlines())
    return rows


def commands_of(folders):
    paths = [pathlib.Path(folder) / f"{name}.command" for folder in folders for name in FILES]
    return "; ".join(dict.fromkeys(path.read_text().strip() for path in paths if path.exists()))


def of_stop_times(rows, run):
    groups = {(row["group"], row["by"]): row for row in rows if row["part"] == "group"}
    for (group, by), row in groups.items():
        whose = GROUPS.get(group, f"Kernels of {group}")
        medians, last = row["p50_of"].values(), row["p99_of"].values()
        beyond = "the whole launch" if group == "persistent" else "a block of a full GPU"
        yield {"id": slug(f"stop-beyond-{group}-{by}"), "run": run,
               "claim": f"{whose}, stopped {BY[by]}: what a stop takes beyond {beyond}",
               **between(row["beyond_us"]["p50"], min(medians), max(medians)),
               "statistic": "median, each kernel counting the same,", "n": row["stops"],
               "of": f"stops of {len(row['kernels'])} kernels",
               "spread": "smallest and largest kernel’s median", "unit": "us", "better": "lower",
               "baselines": [{"name": "99th percentile",
                              **between(row["beyond_us"]["p99"], min(last), max(last))}]}
    yield from of_kernels(rows, run)


def of_kernels(rows, run):
    """Of the kernel whose block is known; of one that was stopped most, where there are several in a step."""
    kernels = {}
    for row in rows:
        if row["part"] == "stops" and row.get("beyond_us"):
            key = row["name"], row["by"]
            if key not in kernels or kernels[key]["stops"] <= row["stops"]:
                kernels[key] = row
    for (name, by), row in kernels.items():
        beyond = row["beyond_us"]
        block = [] if row["block_us"] is None else [{"name": "a block", "value": rounded(row["block_us"]),
                                                     "of": f"by {row['block_by']}"}]
        yield {"id": slug(f"stop-{name}-{by}"), "run": run,
               "claim": f"{name}, stopped {BY[by]}: what a stop takes beyond a block", "statistic": "median",
               **between(beyond["p50"], beyond["p10"], beyond["p90"]), "n": row["stops"], "of": "stops",
               "spread": "10th and 90th percentile", "unit": "us", "better": "lower",
               "baselines": [{"name": "99th percentile", "value": rounded(beyond["p99"])},
                             {"name": "the stop itself", "value": rounded(row["stop_us"]["p50"])}, *block]}


def of_program_stops(rows, run):
    programs = {row["model"]: row for row in rows if row["part"] == "program"}
    compared = [row for row in programs.values() if row["deterministic"] and row["half_way"]]
    right = [row for row in compared if not row["bad"]]
    if compared:
        names = ", ".join(sorted(row["model"] for row in compared))
        yield {"id": "program-stops", "run": run,
               "claim": "Launches of whole programs stopped half way, after whose resumes all results had "
                        f"the bits that they have natively: {names}",
               "value": sum(row["half_way"] for row in right), "statistic": "right ones",
               "n": sum(row["half_way"] for row in compared),
               "of": f"launches stopped half way, {len(compared)} programs", "unit": "right",
               "better": "higher"}
    for row in compared:
        yield {"id": slug(f"program-stops-{row['model']}"), "run": run,
               "claim": f"{row['model']}: launches stopped half way, with the native bits in all trials",
               "value": row["half_way"] if row in right else 0, "statistic": "right ones",
               "n": row["half_way"],
               "of": f"launches stopped half way, {row['trials']} trial{'s' * (row['trials'] != 1)}",
               "unit": "right", "better": "higher"}
    yield from of_shares({name: row["share"] for name, row in programs.items() if row.get("share")}, run)


def of_shares(shares, run):
    """The part of GPU time that is in launches that can be stopped between two blocks."""
    percent = lambda part: rounded(100 * part)
    if shares:
        within = [share["within"] for share in shares.values()]
        yield {"id": "gpu-time-programs", "run": run,
               "claim": "GPU time of programs in launches that can be stopped between two blocks",
               **between(100 * statistics.fmean(within), 100 * min(within), 100 * max(within)),
               "statistic": "mean", "n": len(shares), "of": f"programs: {', '.join(sorted(shares))}",
               "spread": "smallest and largest program", "unit": "%", "better": "higher",
               "baselines": [{"name": name, "value": percent(statistics.fmean(share[part] for share in
                                                                              shares.values()))}
                             for name, part in (("in launches of one wave", "one_wave"),
                                                ("in launches that cannot be stopped", "not_at_all"))]}
    for name, share in shares.items():
        yield {"id": slug(f"gpu-time-{name}"), "run": run,
               "claim": f"{name}: GPU time in launches that can be stopped between two blocks",
               "value": percent(share["within"]), "statistic": "figure", "n": 1,
               "of": f"run, {share['gpu_ms']:.0f} ms of GPU time", "unit": "%", "better": "higher",
               "baselines": [{"name": "in launches of one wave", "value": percent(share["one_wave"])},
                             {"name": "in launches that cannot be stopped",
                              "value": percent(share["not_at_all"])}]}


def of_doors(rows, run):
    times = collections.defaultdict(list)
    hashes = collections.defaultdict(lambda: collections.defaultdict(set))
    for row in rows:
        if "hash" in row:
            times[row["model"], row["mode"]].append(row["ms"])
            hashes[row["model"]][row["mode"]].add(row["hash"])
    # natively, and the same in each run there
    compared = {name for name, modes in hashes.items()
                if len(modes["native"]) == 1 and "not the same natively" not in modes["native"]}
    for mode, words in USED.items():
        ratios = {name: statistics.median(ms) / statistics.median(times[name, "native"])
                  for (name, at), ms in times.items() if at == mode and name in compared}
        if ratios:
            yield {"id": f"door-models-{mode}", "claim": words, "run": run,
                   **between(statistics.geometric_mean(ratios.values()), *ends(ratios.values())),
                   "statistic": "geometric mean", "n": len(ratios),
                   "of": f"models, medians of steps: {', '.join(sorted(ratios))}",
                   "spread": "smallest and largest", "unit": "of native time", "better": "lower"}
    stops = sum(row.get("stopped_half_way", 0) for row in rows if row["mode"] in ("stress", "stops"))
    stopped = sorted(name for name in compared if {"stress", "stops"} & hashes[name].keys())
    if stops and stopped:
        right = all(len(set().union(*hashes[name].values())) == 1 for name in stopped)
        yield {"id": "door-models-stops", "run": run,
               "claim": "Launches of models stopped half way, after whose resumes all results had the bits "
                        f"that they have natively: {', '.join(stopped)}",
               "value": stops if right else 0, "statistic": "right ones", "n": stops,
               "of": f"launches stopped half way, {len(stopped)} models", "unit": "right", "better": "higher"}


def ends(values):
    return min(values), max(values)


def claims_of(rows, run):
    makers = {"stop_times": of_stop_times, "program_stops": of_program_stops, "doors": of_doors}
    return [ordered(claim) for name, make in makers.items() for claim in make(rows[name], run)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    options = results_file.add_options(parser).parse_args()
    return results_file.put(options, HOME, commands_of(options.folders),
                            claims_of(read(options.folders), options.run))


if __name__ == "__main__":
    sys.exit(main())
