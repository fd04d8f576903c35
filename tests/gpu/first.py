"""From the decision to stop one tenant to the first block of another, out of a journal of a server with SMT_MAPPING=1.

The stop was decided by the machine's clock, the block began by the GPU's timer. What is known of the two: a worker ended before
the server saw it, and the urgent one's first worker began after its launch was handed to the driver. Between these two bounds, from what happened within half a second,
lies what is to be added to the GPU's time; the middle is taken, and half the distance is the error.
"""
import bisect

NEAR = 500_000_000   # ns


class Clocks:
    """`urgent`: a tenant whose launches are far apart, so that each one's first worker is known."""

    def __init__(self, entries, urgent):
        self.upper = sorted((e["time_ns"], e["time_ns"] - e["end_ns"]) for e in entries if e["kind"] in ("stopped", "mapping") and "end_ns" in e)
        starts = sorted(e["start_ns"] for e in entries if e["kind"] == "mapping" and e["tenant"] == urgent)
        self.lower = []
        for launched in sorted(e["time_ns"] for e in entries if e["kind"] == "launch" and e["tenant"] == urgent):
            upper = self._near(self.upper, launched)
            # No worker of it began before this; who begins first after it is one of it.
            at = bisect.bisect(starts, launched - min(upper)) if upper else len(starts)
            if at < len(starts):
                self.lower.append((launched, launched - starts[at]))

    @staticmethod
    def _near(bounds, time):
        return [bound for _, bound in bounds[bisect.bisect(bounds, (time - NEAR,)):bisect.bisect(bounds, (time + NEAR,))]]

    def shift(self, time):
        """(ns to be added to the GPU's time, give or take), or None."""
        upper, lower = self._near(self.upper, time), self._near(self.lower, time)
        if not upper or not lower:
            return None
        most, least = min(upper), max(lower)
        return (most + least) / 2, abs(most - least) / 2


def first_blocks(entries, stopped, urgent):
    """Of the tenant `stopped`: us from each decision to the last worker gone, and to the first block of the tenant `urgent`."""
    clocks = Clocks(entries, urgent)
    starts = sorted(e["start_ns"] for e in entries if e["kind"] == "mapping" and e["tenant"] == urgent)
    stops = sorted((e["time_ns"] - e["value"], e["value"]) for e in entries if e["kind"] == "stopped" and e["tenant"] == stopped)
    gone, begun, errors = [], [], []
    for i, (said, took) in enumerate(stops):
        gone.append(took / 1e3)
        known = clocks.shift(said)
        if known is None:
            continue
        at = bisect.bisect(starts, said - known[0] - known[1])
        if at < len(starts) and (i + 1 == len(stops) or starts[at] + known[0] < stops[i + 1][0]):
            begun.append((starts[at] + known[0] - said) / 1e3)
            errors.append(known[1] / 1e3)
    return {"gone_us": gone, "first_us": begun, "give_or_take_us": sorted(errors)[len(errors) // 2] if errors else None}
