"""From the decision to stop one tenant to its last worker's end, and to the first block of another, out of a
journal of a server with SMT_JOURNAL=mapping. The stop was decided by the machine's clock, workers began and
ended by the GPU's timer; clock.py has what lies between.
"""
import bisect

BLUR = 5_000   # ns that the two clocks may be off here
EARLY = 500_000   # ns; requests are 2 ms apart


def first_blocks(entries, stopped, urgent, shift):
    """Of the tenant `stopped`, for each stop in us: until the server saw the last worker gone, until it was
    gone, and until the first block of the tenant `urgent`; the two last also less the time of one block of
    those that the stop found."""
    ends = sorted(e["end_ns"] + shift.at(e["time_ns"]) for e in entries
                  if e["kind"] == "mapping" and e["tenant"] == stopped)
    starts = sorted(e["start_ns"] + shift.at(e["time_ns"]) for e in entries
                    if e["kind"] == "mapping" and e["tenant"] == urgent)
    stops = sorted((e["time_ns"] - e["value"], e["time_ns"],
                    (e["end_ns"] - e["start_ns"]) / e["ticket_blocks"])
                   for e in entries if e["kind"] == "stopped" and e["tenant"] == stopped and
                   "ticket_blocks" in e)
    found = {"seen_us": [], "gone_us": [], "gone_less_block_us": [], "first_us": [],
             "first_less_block_us": [], "block_us": []}
    for i, (said, over, block) in enumerate(stops):
        found["seen_us"].append((over - said) / 1e3)
        found["block_us"].append(block / 1e3)
        last = bisect.bisect(ends, over + BLUR) - 1
        if last >= 0 and ends[last] > said:
            found["gone_us"].append((ends[last] - said) / 1e3)
            found["gone_less_block_us"].append((ends[last] - said - block) / 1e3)
        # Where there is room, it begins before the stop is even said.
        at = bisect.bisect(starts, max(said - EARLY, stops[i - 1][1] if i else 0))
        if at < len(starts) and (i + 1 == len(stops) or starts[at] < stops[i + 1][0]):
            found["first_us"].append((starts[at] - said) / 1e3)
            found["first_less_block_us"].append((starts[at] - said - block) / 1e3)
    return found
