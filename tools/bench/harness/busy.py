"""What tests and measurements of kernels that smt cannot manage share: the program
build/bin/gpu/machine_code/busy, whose kernels have machine code alone, what it answers, and the parts of a
script that are run one after the other."""
import json
import os
import subprocess
import sys

from harness import Lines, Places, base_environment, run, tail


class Busy:
    def __init__(self, options, lines):
        self.options = options
        self.places = Places(options.build)
        self.busy = os.path.join(self.places.programs, "machine_code", "busy")
        self.lines = Lines(os.path.join(options.out, lines))
        self.environment = base_environment()
        self.wrong = 0

    def check(self, right, what):
        if not right:
            self.wrong += 1
            print(f"WRONG: {what}")

    def notes(self, runtime):
        variables = {**self.environment, **runtime.variables()}
        log = run([self.places.smt, "log", "--json"], variables, None, 60)["out"]
        return [entry for entry in map(json.loads, log.splitlines()) if entry["kind"] in ("note", "decision")]

    def answer(self, done):
        try:
            return json.loads(done["out"].replace("READY\n", ""))
        except ValueError:
            self.check(False, f"rc {done['rc']}: {tail(done['out'])} {tail(done['err'])}")
            return {"us": [], "sms": [], "seconds": 0}

    def run_parts(self):
        """Each part of --parts with its time of --seconds. The exit code: 1 when something was wrong."""
        os.makedirs(self.options.out, exist_ok=True)
        for part, seconds in zip(self.options.parts.split(","), self.options.seconds.split(",")):
            print(f"== {part}")
            try:
                getattr(self, part)(float(seconds))
            except (OSError, subprocess.SubprocessError, KeyError, ValueError) as error:
                self.check(False, f"{part}: {error!r}")
            sys.stdout.flush()
        print(f"{self.wrong} wrong")
        return 1 if self.wrong else 0
