#!/usr/bin/env python3
"""A process with services and trainings, told by lines what to do. It answers each with a line of JSON.

  make NAME                                        a program, built and warm; see programs.py
  closed NAME SECONDS [BEGIN]                      requests one behind the other, or steps of a training
  poisson NAME RATE SECONDS SEED DRAIN [BEGIN]     requests that arrive by themselves, RATE a second; what is
                                                   queued at the end is served for DRAIN seconds more
  train NAME SECONDS [BEGIN]                       steps until SECONDS are over, or the line `stop` comes
  stop                                             ends what runs; it has no answer of its own
  quit

BEGIN is by CLOCK_MONOTONIC, which all processes share; without it the command begins at once. Answers have
times by that clock. Anything that libraries print goes to stderr.
"""
import argparse
import collections
import gc
import json
import os
import queue
import sys
import threading
import time
import traceback

from figures import arrivals
from names import parse

AHEAD = 2          # steps of a training that are launched before the first of them is waited for
SPIN = 0.0003      # seconds before a request's arrival that are not slept

now = time.monotonic


class Commands(threading.Thread):
    """Lines of stdin. The line `stop` ends the command in front of it, however late either is read. Behind
    the end of stdin there is a `quit`."""

    def __init__(self):
        super().__init__(daemon=True)
        self.lines, self.read, self.stopped, self.current = queue.Queue(), 0, 0, 0

    def run(self):
        for line in sys.stdin:
            if line.strip() == "stop":
                self.stopped = self.read
            elif line.split():
                self.read += 1
                self.lines.put(line.split())
        self.lines.put(["quit"])

    def next(self):
        words = self.lines.get()
        self.current += 1
        return words

    def stop(self):
        return self.stopped >= self.current


def wait_until(moment):
    while (left := moment - now()) > 0:
        if left > SPIN:
            time.sleep(left - SPIN)


class Worker:
    def __init__(self, maker, device, commands):
        self.maker, self.device, self.stop, self.programs = maker, device, commands.stop, {}
        self.last = None   # the program at work, or that worked last

    def do(self, words):
        return getattr(self, "do_" + words[0])(*words[1:])

    def do_make(self, name):
        begin = now()
        if name not in self.programs:
            program = self.maker.make(name, self.device)
            program.warm()
            program.leave()
            self.programs[name] = program
            gc.collect()
            gc.freeze()   # a collection over all of a network would be a request's latency
        return {"seconds": round(now() - begin, 3)}

    def program(self, name):
        self.last = self.programs[name]
        return self.last

    def do_closed(self, name, seconds, begin="0"):
        program = self.program(name)
        wait_until(float(begin))
        start = now()
        loop = self.steps if parse(name).training else self.requests
        ends = loop(program, start + float(seconds))
        return {"start": start, "ends": ends, "wrong": program.wrong()}

    def do_train(self, name, seconds, begin="0"):
        return self.do_closed(name, seconds, begin)

    def do_poisson(self, name, rate, seconds, seed, drain, begin="0"):
        program, done = self.program(name), []
        moments = arrivals(float(rate), float(seconds), int(seed))
        program.warm(1)
        wait_until(float(begin))
        start = now()
        give_up = start + float(seconds) + float(drain)
        for moment in moments:
            wait_until(start + moment)
            begun = now()
            if begun > give_up or self.stop():
                break
            program.request()
            done.append((moment, begun - start, now() - start))
        return {"start": start, "arrivals": len(moments), "requests": done,
                "unserved": moments[len(done):], "over": now() - start, "wrong": program.wrong()}

    def requests(self, program, end):
        ends = []
        while (not ends or ends[-1] < end) and not self.stop():
            program.request()
            ends.append(now())
        return ends

    def steps(self, program, end):
        """The moments at which the host knew of each step's end."""
        ends, marks = [], collections.deque()
        while (not ends or ends[-1] < end) and not self.stop():
            program.step()
            marks.append(program.mark())
            if len(marks) > AHEAD:
                marks.popleft().wait()
                ends.append(now())
        for mark in marks:
            mark.wait()
            ends.append(now())
        return ends


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu", "stub"], default="cuda")
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**fields):
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    commands = Commands()
    commands.start()
    begin = now()
    if options.device == "stub":
        import stub as maker
    else:
        import programs as maker
    maker.prepare(options.device)
    answer(ready=True, pid=os.getpid(), seconds=round(now() - begin, 3))
    worker = Worker(maker, options.device, commands)
    while (words := commands.next()) != ["quit"]:
        try:
            answer(ok=True, **worker.do(words))
            if worker.last:
                worker.last.leave()
        except Exception as error:   # the controller decides whether to go on with this process
            traceback.print_exc()
            answer(ok=False, why=f"{type(error).__name__}: {error}"[:600], fatal=not survives(maker, options))
    os._exit(0)   # what libraries do at exit is no part of a measurement


def survives(maker, options):
    try:
        maker.settle(options.device)
        return True
    except Exception:
        return False


if __name__ == "__main__":
    main()
