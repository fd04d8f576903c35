"""What several programs at once are worth, from the times of their launches and from what a launch takes
natively and alone: figures of multi-program workloads.

A run is a row and the seconds of a launch alone; a row has ends_s and times_ms of its launches, as
Stage.finish gives them, and arrivals_s where its launches arrived as a queue.

- makespan STP: the time of all launches alone, one after the other, over the time from the first begin to the
  last end. Adaptive Simultaneous Multi-tenancy, Kernelet and smCompactor go by this time.
- progress: of each program, what it gets done in units of what it gets done alone in the same time.
- Eyerman's STP and ANTT (Eyerman and Eeckhout, IEEE Micro 28(3), 2008): the sum of the progress of all
  programs, and the mean of its inverse, which is how many times as long each takes.
"""
import statistics

LEAST = 1e-3   # of progress: a program that got nothing done


def begin_of(row):
    return row["ends_s"][0] - row["times_ms"][0] / 1e3


def makespan_stp(runs):
    begin = min(begin_of(row) for row, _ in runs)
    end = max(row["ends_s"][-1] for row, _ in runs)
    return sum(len(row["ends_s"]) * launch_s for row, launch_s in runs) / (end - begin)


def progress(runs, least_s=0):
    """While all work: from the end of each one's first launch to the first last end. None where that is not
    so long."""
    if not all(row["ends_s"] for row, _ in runs):
        return None
    begin, end = max(row["ends_s"][0] for row, _ in runs), min(row["ends_s"][-1] for row, _ in runs)
    if least_s and end - begin < least_s:
        return None
    return [sum(begin < at <= end for at in row["ends_s"]) * launch_s / max(end - begin, 1e-9)
            for row, launch_s in runs]


def progress_until_done(runs):
    """Of each from its first arrival to its last end: for queues, which are over when they are over."""
    return [len(row["ends_s"]) * launch_s / (row["ends_s"][-1] - row["arrivals_s"][0])
            for row, launch_s in runs]


def turnarounds(row):
    """Of launches that arrived: seconds from the arrival to the end."""
    return [end - arrival for arrival, end in zip(row["arrivals_s"], row["ends_s"])]


def eyerman_stp(each):
    return sum(each)


def antt(each):
    return statistics.mean(1 / max(part, LEAST) for part in each)
