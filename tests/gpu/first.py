"""From the decision to stop one tenant to the first block of another, out of a journal of a server with SMT_MAPPING=1.

The stop was decided by the machine's clock, the block began by the GPU's timer. What is known of the two: a worker ended before
the server saw it, and began after its launch was handed to the driver. Between these two bounds, from what happened within half a second,
lies what is to be added to the GPU's time; the middle is taken, and half the distance is the error.
"""
import bisect

NEAR = 500_000_000   # ns


class Clocks:
    def __init__(self, entries):
        upper, lower = [], []
        launched, mapped = {}, {}
        for entry in entries:
            kind = entry["kind"]
            if kind in ("stopped", "mapping") and "end_ns" in entry:
                upper.append((entry["time_ns"], entry["time_ns"] - entry["end_ns"]))
            if kind == "mapping":
                mapped.setdefault((entry["session"], entry["text"]), []).append(entry["start_ns"])
            elif kind == "launch":
                launched.setdefault((entry["session"], entry["symbol"]), []).append(entry["time_ns"])
        for key, starts in mapped.items():
            times = launched.get(key, [])
            if len(times) == len(starts):   # none was written down in two parts, or not at all
                lower += [(time, time - start) for time, start in zip(times, starts)]
        self.upper, self.lower = sorted(upper), sorted(lower)

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
    clocks = Clocks(entries)
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
