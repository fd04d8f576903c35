#!/usr/bin/env python3
"""A training of PyTorch beside a program that faults again and again, under SMT_KEEPER=takeover.

    training.py --out OUT [--build BUILD] [--python PYTHON] [--networks resnet,transformer] [--seconds 20]
                [--faults 6] [--every 2] [--tries 2] [--cases native,again,quiet,rest,work]
                [--policy priority] [--isolation shared] [--budget SECONDS] [--device sim]

The training (train_job.py) is determined to the last bit. Its cases, for each network:
    native   without smt, for --seconds: what all others are compared with, and how many steps they make
    again    the same, as many steps: whether the training is determined at all
    quiet    under smt, without a fault
    rest     another program faults --faults times while the training stands between two steps, with nothing
             under way, as while it waits for data
    work     the same, at any moment: --every seconds after the standby is ready, until the training has
             ended; --tries times, on servers of their own
Kinds of faults take turns (promises.py), each of a tenant of its own that is more urgent than the training. A
--policy that stops the training between two blocks while another program runs (hpf-whole) leaves less under
way at a fault; with --isolation quarantine nothing of the training is under way with another program. On the
simulated device a stub stands in for PyTorch, and `quiet` is what all are compared with.

A table has for each case its steps, the faults, how many of them the training outlived, its median and its
longest step (a wait between two steps is in none), the longest takeover by the server's log, whether all
losses are those of the same steps natively, and, where it ended, its error and why it could not go on, by the
log.

Results: OUT/training.jsonl with a line a case, and the losses of each case in OUT/losses-*.txt. No case is
begun after the budget, less what the longest one took. The exit code is 1 where a loss or the weights at the
end were other ones, where a program failed for another reason than a fault, and where nothing was compared;
that a training ends with a fault's error is a figure, and no failure.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
import harness  # noqa: E402
from harness import Child, Places, Runtime, tail  # noqa: E402
from logs import await_standby, reason_of_end, takeover, wait_for, whole_log  # noqa: E402
from measurement import Measurement, built_twice  # noqa: E402
from promises import CONTEXT, ERRORS  # noqa: E402

PATIENCE = 240   # seconds of a training, beside those of its steps
CASES = ("native", "again", "quiet", "rest", "work")
NATIVE = ("native", "again")
TENANT = "training"
LAST_FAULT = 3    # seconds before the steps are over, by what they take


class Training(Child):
    """What it has said so far."""

    def said(self):
        found = []
        for line in self.out.decode(errors="replace").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:   # READY, REST, and a line that is being written
                pass
        return [each for each in found if isinstance(each, dict)]

    def losses(self):
        return [each["loss"] for each in self.said() if "loss" in each]

    def rests(self):
        return self.out.count(b"REST ")

    def over(self):
        return self.process.poll() is not None

    end = Child.kill_all   # as Measurement ends its children


class Trainings(Measurement):
    def __init__(self, options):
        super().__init__(options, Places(options.build), "training.jsonl", {})
        self.sim = options.device == "sim"
        options.program = options.culprit
        self.culprit, environment = built_twice(options, "bench_faults", one_context=1, grace=20)
        self.environment = {**environment, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "PYTHONHASHSEED": "0",
                            "OMP_NUM_THREADS": "4"}
        self.job = [options.python, "-B", str(options.job)] + ["--stub"] * self.sim
        self.expected, self.seconds, self.longest = {}, {}, 0.0

    def measure(self):
        wanted = [case for case in self.options.cases.split(",") if not self.sim or case not in NATIVE]
        first = "quiet" if self.sim else "native"
        for network in self.options.networks.split(","):
            for case in [first] + [each for each in wanted if each != first]:
                for number in range(self.options.tries if case == "work" else 1):
                    if time.monotonic() + self.longest > self.end:
                        print(f"the budget of {self.options.budget:g} s is over before {network} {case}")
                        return
                    if network in self.expected or case == first:
                        self.case(network, case, number)

    def case(self, network, case, number):
        begun = time.monotonic()
        try:
            if case in NATIVE:
                row, child = self.alone(network, None)
            else:
                settings = {"SMT_KEEPER": "takeover", "SMT_POLICY": self.options.policy}
                with Runtime(self.places, **settings) as runtime:
                    beside = getattr(self, f"faults_at_{case}", None)
                    row, child = self.beside(network, runtime, beside) if beside \
                        else self.alone(network, runtime)
                    if row.get("error") or row.get("problem"):
                        row["log"] = tail(whole_log(runtime), 3000)
        except OSError as error:   # such as no such Python
            row, child = {"problem": str(error)}, None
        took = time.monotonic() - begun
        self.longest = max(self.longest, took)
        row = self.judge(network, case, number, row, child)
        row = self.lines.add(network=network, case=case, number=number, policy=self.options.policy,
                             isolation=self.options.isolation, seconds=round(took, 1), **row)
        print(f"{network} {case}: {row['steps']} steps, {row['faults']} faults, {took:.0f} s "
              + (row["problem"] or row["error"]), flush=True)

    def start(self, network, runtime, *more):
        steps = len(self.expected[network]["losses"]) if network in self.expected else None
        length = str(steps) if steps else f"{self.options.seconds:g}s"
        patience = PATIENCE + self.options.seconds * 3
        if self.end != float("inf"):
            patience = min(patience, max(20, self.end - time.monotonic() + 20))
        variables = runtime.variables(SMT_TENANT=TENANT, SMT_PRIORITY="normal",
                                      SMT_ISOLATION=self.options.isolation) if runtime else {}
        child = Training([*self.job, network, length, *more], {**self.environment, **variables},
                         self.places.preload if runtime else None, int(patience), stdin=True)
        self.children.append(child)
        return child

    def alone(self, network, runtime):
        child = self.start(network, runtime)
        child.finish()
        return {"faults": 0}, child

    def beside(self, network, runtime, faults_at):
        steps = len(self.expected[network]["losses"])
        every = ("--rest", str(max(1, steps // (self.options.faults + 1)))) \
            if faults_at == self.faults_at_rest else ()
        child, found = self.start(network, runtime, *every), {"faults": 0, "told": 0, "takeovers_ms": []}
        if child.wait_ready(child.timeout):
            faults_at(network, runtime, child, found)
        child.finish()
        found["reason"] = found.get("reason") or reason_of_end(runtime, TENANT)
        return found, child

    def faults_at_rest(self, _, runtime, child, found):
        seen, goes_on = 0, True
        while True:
            if not wait_for(lambda: child.rests() > seen or child.over(), child.timeout) or child.over():
                return
            seen += 1
            goes_on = goes_on and found["faults"] < self.options.faults and self.fault(runtime, found)
            child.tell()

    def faults_at_work(self, network, runtime, child, found):
        last = time.monotonic() + self.seconds[network] - LAST_FAULT
        while found["faults"] < self.options.faults and not child.over():
            if found["faults"] and time.monotonic() > last:
                return
            if not self.fault(runtime, found, lambda: wait_for(child.over, self.options.every)):
                return
            wait_for(child.over, 1)   # an error comes at its next call

    def fault(self, runtime, found, before=lambda: None):
        """When a standby is ready, and `before` is over; until another process serves. False: none does, or
        the training does not go on in it."""
        pid = (runtime.status() or {"pid": 0})["pid"]
        if not pid or not await_standby(runtime, pid):
            found["problem"] = "there is no standby"
            return False
        before()
        kind = CONTEXT[found["faults"] % len(CONTEXT)]
        variables = runtime.variables(SMT_TENANT=f"culprit{found['faults']}", SMT_PRIORITY="high")
        culprit = Child([self.culprit, "culprit", kind], {**self.environment, **variables},
                        self.places.preload, PATIENCE, stdin=True)
        started = culprit.wait_ready(60)
        culprit.tell()
        end = culprit.finish()
        if not started:
            found["problem"] = f"the culprit does not start: {tail(end['out'] + end['err'], 300)}"
            return False
        found["faults"] += 1
        found["told"] += any(error in end["out"] for error in ERRORS[kind])
        wait_for(lambda: (runtime.status() or {"pid": pid})["pid"] != pid, 15)
        wait_for(lambda: takeover(runtime, pid), 5)   # it says so last
        took = takeover(runtime, pid).get("takeover_ms")
        found["takeovers_ms"].append(took)
        found["reason"] = reason_of_end(runtime, TENANT)
        if took is None:
            found["problem"] = f"no takeover after {kind}: {tail(end['out'], 200)}"
        return took is not None and not found["reason"]

    def judge(self, network, case, number, found, child):
        said = child.said() if child else []
        steps = [each for each in said if "loss" in each]
        losses = [each["loss"] for each in steps]
        digest = next((each["digest"] for each in said if "digest" in each), "")
        error = next((each["error"] for each in said if "error" in each), "")
        times = [each["ms"] for each in steps[3:]]
        row = {"steps": len(steps), "faults": 0, "reason": "", **found, "error": error,
               "outlived": found.get("faults", 0) - bool(error and found.get("faults")),
               "longest_ms": max(times, default=None),
               "median_ms": statistics.median(times) if times else None}
        if child:
            path = os.path.join(self.options.out, f"losses-{network}-{case}-{number}.txt")
            pathlib.Path(path).write_text("".join(loss + "\n" for loss in losses))
        problem = found.get("problem", "")
        rc = child.process.returncode if child else None
        if not problem and not digest and not (error and row["faults"]):
            problem = f"exit code {rc}: " + error + " " + tail(child.err.decode(errors="replace"), 600)
        if not problem and error and not row["reason"]:
            problem = f"it ended, and the log has no reason: {error}"
        if not problem and digest and rc != 0:
            problem = f"exit code {rc} behind its last line"
        expected = self.expected.get(network)
        if expected is None and digest:
            self.expected[network] = {"losses": losses, "digest": digest}
            self.seconds[network] = sum(each["ms"] for each in steps) / 1000
        elif expected:
            row["identical"] = losses == expected["losses"][:len(losses)] \
                and digest in ("", expected["digest"])
            if not row["identical"]:
                at = next((i for i, pair in enumerate(zip(losses, expected["losses"])) if pair[0] != pair[1]),
                          None)
                problem = problem or (f"loss {at + 1} is {losses[at]}, not {expected['losses'][at]}"
                                      if at is not None else "other weights at the end")
        return {**row, "ok": not problem, "problem": problem}

    def table(self):
        print(f"\n{'network':12} {'case':7} {'steps':>6} {'faults':>6} {'outlived':>8} {'losses':>9} "
              f"{'step, ms':>9} {'longest':>9} {'takeover':>9}  ended")
        for row in self.lines.all:
            same = {True: "identical", False: "OTHERS", None: "-"}[row.get("identical")]
            times = [format(row[name], ".1f") if row[name] is not None else "-"
                     for name in ("median_ms", "longest_ms")]
            took = max((ms for ms in row.get("takeovers_ms", []) if ms is not None), default="-")
            ended = f"{row['error']} ({row['reason'] or 'no reason in the log'})" if row["error"] else "no"
            counts = "".join(f"{row[name]:{width}} " for name, width in
                             (("steps", 6), ("faults", 6), ("outlived", 8)))
            print(f"{row['network']:12} {row['case']:7} {counts}"
                  f"{same:>9} {times[0]:>9} {times[1]:>9} {took:>9}  {ended}")
        for row in self.lines.all:
            if row["problem"]:
                print(f"WRONG: {row['network']} {row['case']}: {row['problem']}")

    def bad(self):
        return not any("identical" in row for row in self.lines.all) or \
            not all(row["ok"] for row in self.lines.all)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--python", default=sys.executable, help="that has PyTorch")
    parser.add_argument("--job", default=HERE / "train_job.py", help="in place of train_job.py")
    parser.add_argument("--culprit", help="in place of BUILD/bin/bench_faults")
    parser.add_argument("--networks", default="resnet,transformer")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--seconds", type=float, default=20, help="of the native training")
    parser.add_argument("--faults", type=int, default=6)
    parser.add_argument("--every", type=float, default=2, help="seconds behind a standby, in the case work")
    parser.add_argument("--tries", type=int, default=2, help="of the case work")
    parser.add_argument("--policy", default="priority", help="of the server")
    parser.add_argument("--isolation", choices=("shared", "quarantine", "strict"), default="shared",
                        help="of the training")
    parser.add_argument("--budget", type=float, default=300)
    parser.add_argument("--device", choices=("sim",))
    options = parser.parse_args()
    for name, known in (("cases", CASES), ("networks", ("resnet", "transformer"))):
        if unknown := set(getattr(options, name).split(",")) - set(known):
            parser.error(f"--{name}: {', '.join(sorted(unknown))}: none of {','.join(known)}")
    if not options.device:
        try:
            there = subprocess.run([options.python, "-c", "import torch"], capture_output=True, text=True)
        except OSError as error:
            parser.error(f"--python {options.python}: {error.strerror}: name one that has PyTorch")
        if there.returncode != 0:
            parser.error(f"{options.python} has no PyTorch: {tail(there.stderr, 100)}: name one by --python")
    os.makedirs(options.out, exist_ok=True)
    return Trainings(options).all()


if __name__ == "__main__":
    sys.exit(main())
