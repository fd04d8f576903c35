"""Claims of what Kernelet's model predicts (../models/assumptions.py), beside what was measured, and beside a
guess that knows no kernel: the mean of all that were measured."""
import statistics

from results_file import between, rounded

PEAK = 4   # instructions a cycle of a multiprocessor
UNCOALESCED = ("pointer_chase", "spmv")   # the paper's two
TOLD = "the model that slice uses"
GUESS = "the mean of all, for each"
RATIO = {"statistic": "arithmetic mean", "unit": "times", "better": "neither"}


def of(lines, what, form, programs=None):
    return {row["programs"]: row for row in lines
            if row.get("part") == "models" and (row["what"], row["form"]) == (what, form) and
            (programs is None or row["programs"] in programs)}


def off(rows, guess=None):
    """Absolute errors, of the peak."""
    return [abs((row["predicted"] if guess is None else guess) - row["measured"]) / PEAK
            for row in rows.values()]


def of_errors(lines, run, what, name, words):
    rows, told = of(lines, what, "paper"), of(lines, what, "told")
    if not rows:
        return
    errors, mean = off(rows), statistics.fmean(row["measured"] for row in rows.values())
    baselines = [{"name": TOLD, "value": rounded(statistics.fmean(off(told)))}] if told else []
    baselines.append({"name": GUESS, "value": rounded(statistics.fmean(off(rows, mean)))})
    yield {"id": name, "run": run, "claim": f"Instructions a cycle of {words} by Kernelet’s model, off by",
           **between(statistics.fmean(errors), min(errors), max(errors)),
           "statistic": "mean of absolute errors", "n": len(errors),
           "of": "kernels" if "one" in what else "pairs", "spread": "smallest and largest",
           "unit": "of the peak", "better": "lower", "baselines": baselines}


def of_ratio(rows, whole, run, name, words, without):
    """Predicted to measured under an assumption, and without it."""
    ratios = [row["predicted"] / row["measured"] for row in rows.values()]
    if ratios:
        usual = statistics.fmean(whole[each]["predicted"] / whole[each]["measured"] for each in rows)
        yield {"id": name, "run": run, "claim": words, **RATIO,
               **between(statistics.fmean(ratios), min(ratios), max(ratios)), "n": len(ratios),
               "of": "kernels" if " + " not in next(iter(rows)) else "pairs",
               "spread": "smallest and largest", "baselines": [{"name": without, "value": rounded(usual)}]}


def of_counted(lines, run):
    """PUR, MUR and occupancy of the kernels, and how profits go with the differences of the first two."""
    kernels, pairs = of(lines, "counted", "counted"), of(lines, "profit", "counted")
    for ratio, words in (("pur", "PUR"), ("mur", "MUR"), ("occupancy", "Occupancy")):
        each = [row[ratio] for row in kernels.values() if row[ratio] is not None]
        if each:
            yield {"id": f"papers-{ratio}", "run": run, "claim": f"{words} of Kernelet’s kernels",
                   **between(statistics.fmean(each), min(each), max(each)), "statistic": "arithmetic mean",
                   "n": len(each), "of": "kernels", "spread": "smallest and largest", "unit": "of the peak",
                   "better": "neither"}
    profits = [row["profit"] for row in pairs.values()]
    for ratio in ("pur", "mur"):
        apart = [row[ratio] for row in pairs.values()]
        if len(set(profits)) > 2 and len(set(apart)) > 2:
            yield {"id": f"papers-profit-by-{ratio}", "run": run,
                   "claim": "Co-scheduling profit of pairs with half of the CTAs each, and the difference of "
                            f"their {ratio.upper()}",
                   "value": rounded(statistics.correlation(profits, apart)),
                   "statistic": "correlation", "n": len(profits), "of": "pairs", "unit": "of 1",
                   "better": "neither"}


def of_profits(lines, run):
    """How far off the profits are that each form of the model expects, and two that know no kernel."""
    told, paper = of(lines, "expected profit", "told"), of(lines, "expected profit", "paper")
    if told and set(told) == set(paper):
        measured = [row["measured"] for row in told.values()]
        mean = statistics.fmean(measured)
        errors = {form: [abs(row["predicted"] - row["measured"]) for row in rows.values()]
                  for form, rows in (("told", told), ("paper", paper))}
        beside = {"R_m alone, as in the paper": errors["paper"], "no profit": map(abs, measured),
                  GUESS: [abs(mean - each) for each in measured]}
        yield {"id": "papers-profit-halves", "run": run,
               "claim": "Co-scheduling profit of pairs with half of the CTAs each, by slice’s model, off by",
               **between(statistics.fmean(errors["told"]), min(errors["told"]), max(errors["told"])),
               "statistic": "mean of absolute errors", "n": len(told), "of": "pairs",
               "spread": "smallest and largest", "unit": "of the time", "better": "lower",
               "baselines": [{"name": name, "value": rounded(statistics.fmean(each))}
                             for name, each in beside.items()]}


def of_models(lines, run):
    yield from of_counted(lines, run)
    yield from of_profits(lines, run)
    yield from of_errors(lines, run, "one kernel", "papers-ipc-alone", "one kernel")
    yield from of_errors(lines, run, "two kernels", "papers-ipc-pairs",
                         "two kernels with half of the CTAs each")
    yield from of_ratio(of(lines, "one kernel", "coalesced", UNCOALESCED), of(lines, "one kernel", "paper"),
                        run, "papers-ipc-coalesced",
                        "Instructions a cycle of pointer_chase and spmv that Kernelet’s model predicts as if "
                        "no access were uncoalesced, to measured ones", "told of uncoalesced accesses")
    yield from of_ratio(of(lines, "two kernels", "one scheduler"), of(lines, "two kernels", "paper"),
                        run, "papers-ipc-one-scheduler",
                        "Instructions a cycle of two kernels that Kernelet’s model predicts of one warp "
                        "scheduler, to measured ones", "four warp schedulers")
