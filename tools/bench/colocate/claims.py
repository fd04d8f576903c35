#!/usr/bin/env python3
"""Claims for tools/bench/results.json of what colocate.py measured:

    claims.py OUT... --run NAME --commit C --machine M --raw PLACE [--main smt:priority] [--write]

prints the run and its claims, a line each. --write puts them into results.json, in place of those with the
same names; tools/bench/report.py then writes the page. The values are of --main, those of other modes stand
beside them.
"""
import argparse
import json
import pathlib
import shlex
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import report  # noqa: E402
import results_file  # noqa: E402
import summary  # noqa: E402
from figures import geometric_mean, median  # noqa: E402
from modes import Mode  # noqa: E402
from results_file import ordered, rounded  # noqa: E402

TITLE = "Services and trainings of PyTorch on one GPU"
TEXT = ["Modes alternate within a round (`tools/bench/colocate`). Requests arrive by a Poisson process, at a "
        "part (the load) of what the service does in a closed loop alone; *to alone* is to the same requests "
        "natively and alone, in the same round. The time of a request is from its arrival, so with what it "
        "waits for earlier ones, or from its begin. A sum is what both get done, each in units of what it "
        "does alone."]
NAMES = {"time-slicing": "time-slicing", "mps": "MPS", "mps-priority": "MPS with client priority",
         "mps-half": "MPS, trainings with half of the threads", "smt-alone": "smt, alone"}
SERVICES = {   # claim, unit, better
    "queued_p50": ("Median of requests from their arrival, beside a training, to alone", "times", "lower"),
    "queued_p99": ("99th percentile of requests from their arrival, beside a training, to alone", "times",
                   "lower"),
    "served_p99": ("99th percentile of requests from their begin, beside a training, to alone", "times",
                   "lower"),
    "training": ("Rate of a training beside a service, to alone", "of its rate alone", "higher"),
    "sum": ("What a service and a training side by side get done", "of what one does alone", "higher")}
HOME = {"title": TITLE, "text": TEXT}


def name_of(mode):
    return NAMES.get(mode) or "smt, " + mode.removeprefix("smt:").replace(",", ", ")


def of_values(values):
    return {"value": rounded(geometric_mean(values)), "low": rounded(min(values)),
            "high": rounded(max(values))}


def medians(by_pair):
    return {pair: median(rounds.values()) for pair, rounds in by_pair.items()}


def over_pairs(name, words, run, modes, main, what, unit, better):
    """modes: {mode: {pair: {round: value}}}. Pairs that a mode beside it lacks are named by their number."""
    values = medians(modes[main])
    rounds = max(map(len, modes[main].values()))
    of = f"{what}, medians of {rounds} rounds" if rounds > 1 else what
    beside = [{"name": name_of(mode), **of_values(list(medians(by_pair).values())),
               **({"of": f"{len(by_pair)} {what}"} if len(by_pair) != len(values) else {})}
              for mode, by_pair in modes.items() if mode != main]
    return {"id": name, "claim": words, "run": run, **of_values(list(values.values())),
            "statistic": "geometric mean", "n": len(values), "of": of,
            "spread": f"smallest and largest of {what}", "unit": unit, "better": better,
            **({"baselines": beside} if beside else {})}


def of_services(rows, run, main):
    found = summary.service_figures(rows)
    for what, (words, unit, better) in SERVICES.items():
        for load in sorted({at for name, at, _ in found if name == what}):
            modes = {mode: pairs for (name, at, mode), pairs in found.items()
                     if (name, at) == (what, load) and mode != "smt-alone"}
            if main in modes:
                yield over_pairs(report.slug(f"colocate-{what}-load-{load}"), f"{words}, load {load}", run,
                                 modes, main, "pairs", unit, better)


def of_trainings(rows, run, main):
    found = summary.training_figures(rows)
    sums = {mode: {pair: rounds for pair, rounds in pairs.items() if " + " in pair}
            for mode, pairs in summary.sums_of(found).items()}
    sums = {mode: pairs for mode, pairs in sums.items() if pairs}
    plain = {mode: pairs for mode, pairs in sums.items() if "SMT_WEIGHT" not in mode}
    if main in plain:
        yield over_pairs("colocate-trainings-sum", "What two trainings side by side get done", run, plain,
                         main, "pairs", "of what one does alone", "higher")
        for pair in plain[main]:
            modes = {mode: {pair: pairs[pair]} for mode, pairs in plain.items() if pair in pairs}
            yield of_rounds(report.slug(f"colocate-sum-{pair}"), f"{pair}: what both get done", run, modes,
                            main, pair, "of what one does alone", "higher")
    for mode, pairs in found.items():
        wanted = Mode(mode).variables("first").get("SMT_WEIGHT") if "SMT_WEIGHT" in mode else None
        for pair, rounds in pairs.items() if wanted else ():
            ratios = {turn: values[0] / max(values[1], 1e-9) for turn, values in rounds.items()
                      if len(values) == 2}
            if ratios:
                words = (f"{pair} under {name_of(mode)}: how many times as much of its rate alone the first "
                         "gets done")
                claim = of_rounds(report.slug(f"colocate-{mode}-{pair}"), words, run,
                                  {mode: {pair: ratios}}, mode, pair, "times", "neither")
                yield {**claim, "baselines": [{"name": "wanted", "value": float(wanted)}]}


def of_rounds(name, words, run, modes, main, pair, unit, better):
    def one(mode):
        values = list(modes[mode][pair].values())
        return {"value": rounded(median(values)), "low": rounded(min(values)), "high": rounded(max(values))}
    beside = [{"name": name_of(mode), **one(mode)} for mode in modes if mode != main]
    return {"id": name, "claim": words, "run": run, **one(main), "statistic": "median",
            "n": len(modes[main][pair]), "of": "rounds", "spread": "min and max", "unit": unit,
            "better": better, **({"baselines": beside} if beside else {})}


def of_closed(rows, run):
    found = summary.closed_figures(rows)
    if not found:
        return
    yield over_pairs("colocate-closed", "Rate of services and trainings alone in a closed loop under smt",
                     run, {"smt-alone": found}, "smt-alone", "programs", "of native rate", "higher")
    for program, rounds in found.items():
        yield of_rounds(report.slug(f"colocate-closed-{program}"), f"{program}, alone in a closed loop", run,
                        {"smt-alone": {program: rounds}}, "smt-alone", program, "of native rate", "higher")


def claims_of(rows, run, main):
    return [ordered(claim) for claim in (*of_services(rows, run, main), *of_trainings(rows, run, main),
                                         *of_closed(rows, run))]


def merged(data, name, run, claims):
    return results_file.merged(data, HOME, name, run, claims)


def command_of(folder):
    with open(pathlib.Path(folder) / "colocate.jsonl") as file:
        facts = json.loads(file.readline()).get("facts", {})
    return "tools/bench/colocate/colocate.py " + shlex.join(facts.get("arguments", []))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    results_file.add_options(parser)
    parser.add_argument("--main", default="smt:priority")
    options = parser.parse_args()
    claims = claims_of(summary.read(options.folders), options.run, options.main)
    return results_file.put(options, HOME, "; ".join(map(command_of, options.folders)), claims)


if __name__ == "__main__":
    sys.exit(main())
