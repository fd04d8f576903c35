"""The statistics of co-location: arrivals, rates within a window, latencies, and means over pairs. Pure
functions of the standard library."""
import math
import pathlib
import random
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from printed import quantile  # noqa: E402

median = statistics.median


def arrivals(rate, seconds, seed):
    """Moments within [0, seconds) at which requests arrive: a Poisson process, the same for one seed."""
    chance, moments, moment = random.Random(seed), [], 0.0
    while (moment := moment + chance.expovariate(rate)) < seconds:
        moments.append(moment)
    return moments


def done_by(moment, start, ends):
    """How much was done by then: each of `ends` is the end of one piece, which began where the one before
    ended, the first at `start`; of a piece under way its part."""
    before = start
    for count, end in enumerate(ends):
        if moment < end:
            return count + max(0.0, moment - before) / (end - before)
        before = end
    return float(len(ends))


def rate_within(begin, end, start, ends):
    """Pieces a second within the window."""
    return (done_by(end, start, ends) - done_by(begin, start, ends)) / (end - begin)


def latencies(answer):
    """Of a worker's answer to `poisson`, in ms: from the arrival, and from the begin. A request that was not
    served has waited for as long as the worker tried."""
    queued = [(end - arrived) * 1e3 for arrived, _, end in answer["requests"]]
    served = [(end - begun) * 1e3 for _, begun, end in answer["requests"]]
    return queued + [max(0.0, answer["over"] - arrived) * 1e3 for arrived in answer["unserved"]], served


def geometric_mean(values):
    """None of nothing."""
    values = list(values)
    return statistics.geometric_mean(max(each, 1e-9) for each in values) if values else None


def of_rounds(values):
    """{value, low, high, n}: the median of rounds, and their range."""
    values = [each for each in values if each is not None and math.isfinite(each)]
    if not values:
        return None
    return {"value": median(values), "low": min(values), "high": max(values), "n": len(values)}


def over_pairs(by_pair, worst=max):
    """Of {pair: median of its rounds}: geometric mean, and the worst pair with its value."""
    if not by_pair:
        return None
    pair = worst(by_pair, key=by_pair.get)
    return {"mean": geometric_mean(by_pair.values()), "worst": by_pair[pair], "pair": pair, "n": len(by_pair)}


def latency_figures(answer):
    queued, served = latencies(answer)
    return {"n": len(queued), "unserved": len(answer["unserved"]),
            **{f"{what}_p{share}": quantile(values, share / 100) if values else None
               for what, values in (("queued", queued), ("served", served)) for share in (50, 99)}}
