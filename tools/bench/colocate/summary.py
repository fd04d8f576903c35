"""What rows of colocate.jsonl say: figures by round, tables for people."""
import collections
import json
import os
import sys

from figures import geometric_mean, median, of_rounds
from phases import ALONE, SMT_ALONE

# of services beside trainings, each to the service or the training alone and natively
WHAT = {"queued_p50": "p50 from arrival", "queued_p99": "p99 from arrival", "served_p50": "p50 from begin",
        "served_p99": "p99 from begin", "training": "training", "sum": "sum"}
LOWER = {name for name in WHAT if "_p" in name}


def read(folders):
    """Rows of several runs; rounds of two runs are two."""
    rows = []
    for folder in folders:
        with open(os.path.join(folder, "colocate.jsonl")) as file:
            for row in map(json.loads, file):
                rows.append({**row, "turn": (folder, row.get("round"))})
    return [row for row in rows if "experiment" in row and "failed" not in row]


class Base:
    """What is alone: of the same round, else the median of rounds."""

    def __init__(self, rows, key, label=ALONE):
        self.found = collections.defaultdict(dict)
        for row in rows:
            if row["mode"] == label:
                self.found[key(row)][row["turn"]] = row

    def value(self, key, turn, field):
        rounds = {at: row.get(field) for at, row in self.found.get(key, {}).items()}
        values = [value for value in rounds.values() if value is not None]
        if not values:
            return None
        return rounds.get(turn) if rounds.get(turn) is not None else median(values)


def ratio(value, base):
    return value / base if value is not None and base else None


def service_figures(rows):
    """{(what, load, mode): {pair: {turn: value}}}, alone under smt as a mode whose pairs are services."""
    rows = [{**row, "training": row.get("training_rate")} for row in rows if row["experiment"] == "services"]
    of_service = Base([row for row in rows if "service" in row["programs"] and len(row["programs"]) == 1],
                      lambda row: (row["programs"]["service"], row["load"]))
    of_training = Base([{**row, "rate_alone": row["rates"][0]} for row in rows if "rates" in row],
                       lambda row: row["programs"]["first"])
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows:
        if row["mode"] == ALONE or "service" not in row["programs"]:
            continue
        service, training = row["programs"]["service"], row["programs"].get("first")
        values = {what: ratio(row.get(what), of_service.value((service, row["load"]), row["turn"], what))
                  for what in LOWER}
        if training:
            values["training"] = ratio(row["training"], of_training.value(training, row["turn"],
                                                                          "rate_alone"))
            if values["training"] is not None:
                values["sum"] = values["training"] + row["load"] * row["served_part"]
        values["n"] = row["n"] if any(value is not None for value in values.values()) else None
        for what, value in values.items():
            if value is not None:
                pair = f"{service} + {training}" if training else service
                found[what, row["load"], row["mode"]][pair][row["turn"]] = value
    return found


def training_figures(rows):
    """{mode: {pair: {turn: [of the first, of the second]}}}, each of its rate alone and natively."""
    rows = [row for row in rows if row["experiment"] == "trainings"]
    base = Base([{**row, "rate_alone": row["rates"][0]} for row in rows if len(row["rates"]) == 1],
                lambda row: row["programs"]["first"])
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows:
        if row["mode"] == ALONE:
            continue
        names = list(row["programs"].values())
        values = [ratio(rate, base.value(name, row["turn"], "rate_alone"))
                  for name, rate in zip(names, row["rates"])]
        if None not in values:
            found[row["mode"]][" + ".join(names)][row["turn"]] = values
    return found


def closed_figures(rows):
    """{program: {turn: rate under smt to native}}"""
    rows = [row for row in rows if row["experiment"] == "closed"]
    key = lambda row: next(iter(row["programs"].values()))   # noqa: E731
    base = Base([{**row, "rate_alone": row["rates"][0]} for row in rows], key)
    found = collections.defaultdict(dict)
    for row in rows:
        value = ratio(row["rates"][0], base.value(key(row), row["turn"], "rate_alone"))
        if row["mode"] == SMT_ALONE and value is not None:
            found[key(row)][row["turn"]] = value
    return found


def mean_over_pairs(by_pair):
    """Of {pair: {turn: value}}: the median of rounds' geometric means over pairs, over rounds that have all
    pairs; where none has, the geometric mean of the pairs' medians. With the number of pairs."""
    turns = [turn for turn in dict.fromkeys(turn for rounds in by_pair.values() for turn in rounds)
             if all(turn in rounds for rounds in by_pair.values())]
    means = [geometric_mean(rounds[turn] for rounds in by_pair.values()) for turn in turns]
    found = of_rounds(means) or of_rounds([geometric_mean(median(rounds.values())
                                                          for rounds in by_pair.values())])
    return {**found, "pairs": len(by_pair)} if found else None


def worst_pair(by_pair, lower_is_better):
    medians = {pair: median(rounds.values()) for pair, rounds in by_pair.items()}
    pair = (max if lower_is_better else min)(medians, key=medians.get)
    return pair, medians[pair]


def shown(figure):
    return f"{figure['value']:.3f} ({figure['low']:.3f}..{figure['high']:.3f})"


def one_line(label, by_pair, lower_is_better):
    mean, (pair, worst) = mean_over_pairs(by_pair), worst_pair(by_pair, lower_is_better)
    return (f"{label:<40} {shown(mean):>24} {mean['pairs']:>5} {mean['n']:>6}   {worst:.3f} {pair}")


def show_services(figures, out):
    loads = sorted({load for _, load, _ in figures})
    for what, words in WHAT.items():
        for load in loads:
            modes = [mode for name, at, mode in figures if (name, at) == (what, load)]
            if modes:
                print(f"\n{words}, load {load}, to alone and natively\n{'mode':<40} "
                      f"{'geometric mean':>24} {'pairs':>5} {'rounds':>6}   worst", file=out)
            for mode in modes:
                print(one_line(mode, figures[what, load, mode], what in LOWER), file=out)
    print(f"\n{'pair':<34} {'load':>5} {'mode':<34} " + " ".join(f"{what:>11}" for what in WHAT)
          + " requests", file=out)
    rows = dict.fromkeys((pair, load, mode) for (_, load, mode), by_pair in figures.items()
                         for pair in by_pair)
    for pair, load, mode in sorted(rows, key=lambda row: row[:2]):
        cells = []
        for what in WHAT:
            rounds = figures.get((what, load, mode), {}).get(pair)
            cells.append(f"{median(rounds.values()):>11.3f}" if rounds else f"{'-':>11}")
        cells.append(f"{sum(figures['n', load, mode][pair].values()):>8}")
        print(f"{pair:<34} {load:>5} {mode:<34} " + " ".join(cells), file=out)


def show_trainings(figures, out):
    print(f"\ntrainings side by side, of their rates alone and natively\n{'pair':<34} {'mode':<38} "
          f"{'first':>6} {'second':>6} {'ratio':>6} {'sum':>22} {'to MPS':>7} {'rounds':>6}", file=out)
    sums = sums_of(figures)
    for mode, pairs in figures.items():
        for pair, rounds in pairs.items():
            each = [median(values[i] for values in rounds.values()) for i in range(len(
                next(iter(rounds.values()))))]
            beside = sums.get("mps", {}).get(pair)
            total = of_rounds(sums[mode][pair].values())
            to_mps = f"{total['value'] / median(beside.values()):>7.3f}" if beside and len(each) > 1 else \
                f"{'-':>7}"
            cells = [f"{value:>6.3f}" for value in each] + [f"{'-':>6}"] * (2 - len(each))
            cells.append(f"{each[0] / each[1]:>6.3f}" if len(each) > 1 and each[1] else f"{'-':>6}")
            print(f"{pair:<34} {mode:<38} {' '.join(cells)} {shown(total):>22} {to_mps} {total['n']:>6}",
                  file=out)
    for mode, by_pair in sums.items():
        pairs = {pair: rounds for pair, rounds in by_pair.items() if " + " in pair}
        if pairs:
            print(one_line(f"sum, {mode}", pairs, False), file=out)


def sums_of(figures):
    """{mode: {pair: {turn: sum}}}"""
    return {mode: {pair: {turn: sum(values) for turn, values in rounds.items()}
                   for pair, rounds in pairs.items()} for mode, pairs in figures.items()}


def show_closed(figures, out):
    print(f"\nalone in a closed loop, rate under smt to native\n{'program':<30} {'rate':>24} rounds",
          file=out)
    for program, rounds in figures.items():
        print(f"{program:<30} {shown(of_rounds(rounds.values())):>24} {len(rounds):>6}", file=out)
    print(one_line("all", figures, False), file=out)


def show(rows, out=sys.stdout):
    if services := service_figures(rows):
        show_services(services, out)
    if trainings := training_figures(rows):
        show_trainings(trainings, out)
    if closed := closed_figures(rows):
        show_closed(closed, out)
