"""Claims of FLEP's figures 1 and 9: what small launches wait for behind large ones under MPS, and what hpf
gains by the delay between the two, of rows of the part `behind`."""
import bisect
import itertools
import statistics

from metrics import begin_of
from parts import fresh
from results_file import between
from summary import by_group, medians, small_slower

GROUP = "small ones first"
PARTS = ("first", "second", "third", "last")   # quarters of the large launch


def by_delay(row):
    """Of a run's small launches: [(delay, seconds from arrival to end)]. The delay is that behind the begin
    of the large launch that is under way, of what that launch takes."""
    large, *small = row["programs"]
    edges = [begin_of(large), *large["ends_s"]]
    found = []
    for arrival, end in itertools.chain(*(fresh(each) for each in small)):
        at = bisect.bisect_right(edges, arrival)
        if 0 < at < len(edges):
            begin, stop = edges[at - 1], edges[at]
            found.append(((arrival - begin) / (stop - begin), end - arrival))
    return found


def quarters(rows):
    """{quarter: mean seconds}"""
    found = {}
    for delay, seconds in itertools.chain(*map(by_delay, rows)):
        found.setdefault(min(3, int(4 * delay)), []).append(seconds)
    return {quarter: statistics.fmean(each) for quarter, each in found.items()}


def of_delays(lines, run):
    modes = by_group(lines).get(GROUP, {})
    ratios = {}
    for name in set(modes.get("hpf", {})) & set(modes.get("mps", {})):
        ours, mps = quarters(modes["hpf"][name]), quarters(modes["mps"][name])
        for quarter in set(ours) & set(mps):
            ratios.setdefault(quarter, []).append(mps[quarter] / ours[quarter])
    for quarter, each in sorted(ratios.items()):
        yield {"id": f"papers-small-ones-delay-{quarter + 1}", "run": run,
               "claim": "What small launches take under MPS, to that under hpf with priority: those that "
                        f"arrive in the {PARTS[quarter]} quarter of a large one",
               **between(statistics.fmean(each), min(each), max(each)), "statistic": "arithmetic mean",
               "n": len(each), "of": "workloads, means of launches",
               "spread": "smallest and largest workload", "unit": "times", "better": "higher"}


def of_mps(lines, run):
    found = by_group(lines).get(GROUP, {}).get("mps", {})
    each = list(medians(found, small_slower).values())
    if each:
        yield {"id": "papers-small-ones-mps", "run": run,
               "claim": "What small launches take behind large ones under MPS, to what they take alone: "
                        "FLEP’s pairs", **between(statistics.fmean(each), min(each), max(each)),
               "statistic": "arithmetic mean", "n": len(each), "of": "workloads, medians of runs",
               "spread": "smallest and largest workload", "unit": "times", "better": "neither"}


def of_behind(lines, run):
    yield from of_mps(lines, run)
    yield from of_delays(lines, run)
