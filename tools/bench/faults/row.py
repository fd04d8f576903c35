"""Experiment row of faults.py: one tenant faults as often as it can, and others compute.

For a third of the time two workers compute alone, then beside a tenant that starts a program --tries times,
at equal distances, whose kernel makes an illegal access. A worker that ended with the error is started again;
the time that this takes counts. Right is: the tenant is refused for a growing time (at first not at all, then
for 15, 30 and 60 s, where the budget leaves so much), so few of its tries lose the context, and the workers
get at least AT_LEAST of what they get alone.
"""
import re
import threading
import time

AT_LEAST = 0.8
WORKERS = 2
ALONE = 1 / 3   # of the budget
LONGEST = 300   # seconds in all, where the budget is longer
GROWS = 1.5   # a time for which it is refused, of the one before; it doubles
MOST = 0.2    # of its tries that lose the context
REFUSED = re.compile(r"(\d+) times within an hour")


class Workers:
    """Programs that compute, each again when it ended. Counts their computations."""

    def __init__(self, faults, runtime):
        self.faults, self.runtime = faults, runtime
        self.over, self.done, self.ends = False, [0] * WORKERS, 0
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(WORKERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        for thread in self.threads:
            thread.join()

    def work(self, place):
        before, every = 0, 5 if self.faults.options.device == "sim" else 100
        while not self.over:
            child = self.faults.child(self.runtime, "worker", every, tenant=f"worker{place}",
                                      patience=2 * LONGEST)
            while not self.over and child.process.poll() is None:
                time.sleep(0.02)
                self.done[place] = before + counted(child)
            child.tell()
            child.finish()
            before = self.done[place] = before + counted(child)
            self.ends += not self.over

    def rate(self, seconds, meanwhile):
        """Computations a second in that time, or for as long as `meanwhile` takes."""
        begun, before = time.monotonic(), sum(self.done)
        meanwhile(begun, seconds)
        time.sleep(max(0, begun + seconds - time.monotonic()))
        return (sum(self.done) - before) / (time.monotonic() - begun)


def counted(child):
    last = child.out.rsplit(b"\n", 2)
    return int(last[-2]) if len(last) > 1 and last[-2].isdigit() else 0


def row_of_faults(faults):
    """The exit code."""
    options = faults.options
    seconds = min(options.budget, LONGEST)
    tries = []

    def one_after_the_other(begun, length):
        for number in range(options.tries):
            time.sleep(max(0, begun + length * number / options.tries - time.monotonic()))
            tries.append(one_try(faults, runtime, number, begun))

    with faults.runtime() as runtime, Workers(faults, runtime) as workers:
        while not all(workers.done):
            time.sleep(0.05)
        alone = workers.rate(seconds * ALONE, lambda *_: None)
        beside = workers.rate(seconds * (1 - ALONE), one_after_the_other)
        ends = workers.ends
    return judge(faults, tries, {"alone": round(alone, 1), "beside": round(beside, 1), "worker_ends": ends})


def one_try(faults, runtime, number, begun):
    at = time.monotonic() - begun
    child = faults.child(runtime, "culprit", "load", tenant="row", priority=1)
    child.tell()
    end = child.finish()
    refused = REFUSED.search(end["out"] + end["err"])
    outcome = "refused" if refused else "faults" if "IllegalAddress" in end["out"] else "fails"
    return faults.lines.add(experiment="row", number=number, at_s=round(at, 2), outcome=outcome,
                            said=(end["out"] + end["err"])[-300:] if outcome == "fails" else "")


def judge(faults, tries, found):
    """Prints what was found; 1 where it is not what is promised."""
    at = [each["at_s"] for each in tries if each["outcome"] == "faults"]
    gaps = [round(later - sooner, 1) for sooner, later in zip(at, at[1:])]
    share = found["beside"] / found["alone"] if found["alone"] else 0
    # Longer than all before. Where it is not known whose a fault was, the next one may come at once.
    longest = [gap for i, gap in enumerate(gaps) if all(gap > GROWS * before for before in gaps[:i])]
    problems = [f"a try {each['outcome']}: {each['said']}" for each in tries if each["outcome"] == "fails"]
    if not at:
        problems.append("no try faulted")
    if len(at) > MOST * len(tries):
        problems.append(f"it lost the context {len(at)} times of {len(tries)}")
    if len(longest) < 3:
        problems.append("the time for which it is refused does not grow")
    if share < AT_LEAST:
        problems.append(f"the others got {share:.2f} of what they get alone")
    faults.lines.add(experiment="row", share=round(share, 3), between_faults_s=gaps, ok=not problems,
                     why="; ".join(problems), **found)
    print(f"{len(tries)} tries, {len(at)} faults, seconds between them: {gaps}\n"
          f"others: {found['alone']} computations a second alone, {found['beside']} beside it: {share:.2f}, "
          f"promised {AT_LEAST}; workers ended {found['worker_ends']} times")
    for problem in problems:
        print(f"BROKEN: {problem}")
    return int(bool(problems))
