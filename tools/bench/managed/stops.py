"""The examples stopped half way, each so many times: which to start next so that all get there soon.

A stop takes as long as a block does, and the server's one dispatcher does some ten thousand a second. So a
few programs run at a time, each with few workers (STOPS_ONLY of a seed), as many of them the same as it
takes; blocks that take milliseconds where a program is not trivially small are asked for there.
"""
import json
import re
import subprocess
import threading
import time

STOPS_ONLY = 1 << 31   # in a seed of SMT_STRESS
HALF_WAY = re.compile(r"(\d+) launches stopped half way")
# The others' blocks take less than a millisecond at size small.
TRIVIAL = {"nbody", "particle_filter", "string_match", "tpacf"}
FIRST_GUESS = 300e-6   # seconds for a stop of one program


class Count:
    def __init__(self):
        self.half_way, self.runs, self.right, self.running = 0, 0, 0, 0
        self.iterations = None
        self.seconds_each = FIRST_GUESS

    def left(self, wanted):
        """Seconds, if one more of it is started. A program that was wrong is not run again."""
        return (max(0, wanted - self.half_way) * self.seconds_each / (self.running + 1)
                if self.right == self.runs else 0)


class Journal:
    """Follows the server's journal, and knows of each tenant that has left how often it was stopped half
    way."""

    def __init__(self, places, environment):
        self.process = subprocess.Popen([places.smt, "log", "--json", "--follow"], stdout=subprocess.PIPE,
                                        text=True, env=environment)
        self.changed = threading.Condition()
        self.half_way, self.gone = {}, set()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            if "half way" not in line and '"kind":"closed"' not in line:
                continue
            entry = json.loads(line)
            with self.changed:
                if entry["kind"] == "closed":
                    self.gone.add(entry["tenant"])
                    self.changed.notify_all()
                else:
                    self.half_way[entry["tenant"]] = self.half_way.get(entry["tenant"], 0) + int(
                        HALF_WAY.search(entry["text"])[1])

    def of(self, tenant, patience=5):
        with self.changed:
            self.changed.wait_for(lambda: tenant in self.gone, patience)
            return self.half_way.get(tenant, 0)

    def close(self):
        self.process.kill()
        self.thread.join(5)


class Stops:
    """`run(name, size, iterations, tenant, seed)` runs a program and returns a row with `ok` and
    `seconds`."""

    def __init__(self, names, run, journal, options, end):
        self.run, self.journal, self.options, self.end = run, journal, options, end
        self.counts = {name: Count() for name in names}
        self.lock, self.seed = threading.Lock(), 0

    @staticmethod
    def size_of(name, options):
        return "trivial" if name in TRIVIAL else options.stops_size

    def next(self):
        with self.lock:
            name = max(self.counts, key=lambda each: self.counts[each].left(self.options.stops))
            count = self.counts[name]
            if count.left(self.options.stops) == 0 or time.monotonic() > self.end:
                return None
            count.running += 1
            self.seed += 1
            return name, count.iterations or self.options.stops_iterations, self.seed

    def one(self, name, iterations, seed):
        tenant = f"{name}-{seed}"
        row = self.run(name, self.size_of(name, self.options), iterations, tenant, STOPS_ONLY + seed)
        stopped = self.journal.of(tenant)
        with self.lock:
            count = self.counts[name]
            count.running -= 1
            count.runs += 1
            count.right += row["ok"]
            count.half_way += stopped
            count.seconds_each = row["seconds"] / max(1, stopped)
            # Runs of a few seconds: starting them costs nothing then, and no program is left behind at the
            # end.
            missing = max(1, self.options.stops - count.half_way) / max(1, stopped)
            longer = min(self.options.stops_seconds / max(0.05, row["seconds"]), missing)
            count.iterations = max(1, min(1_000_000, int(iterations * longer)))

    def work(self):
        while (chosen := self.next()) is not None:
            self.one(*chosen)

    def all(self):
        threads = [threading.Thread(target=self.work) for _ in range(self.options.stops_at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.counts
