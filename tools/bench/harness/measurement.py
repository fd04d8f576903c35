"""What scripts that measure have in common: options and a budget, processes that answer, servers that are
asked, rows that are written as they come, and a table also of a run that is cut off by SIGTERM."""
import os
import shlex
import signal
import subprocess
import sys
import time

from harness import ROOT, Lines, base_environment
from talker import Talker


def simulated(build, **device):
    """Variables of programs on the simulated device; `device` is for SMT_SIM."""
    found = {"SMT_DEVICE": "sim", "SMT_REAL_DRIVER": "none", "SMT_PROFILES": "none",
             "LD_LIBRARY_PATH": os.path.join(build, "lib", "cudart")}
    if device:
        found["SMT_SIM"] = ",".join(f"{name}={value}" for name, value in device.items())
    return found


def built_twice(options, name, **device):
    """Path and variables of a program of tools/bench that is built for a GPU and, with the shared runtime,
    for the simulated device; `device` is for SMT_SIM."""
    build, on_sim = os.path.abspath(options.build), options.device == "sim"
    path = options.program or os.path.join(build, "bin", f"{name}_shared" if on_sim else name)
    return path, {**base_environment(), **(simulated(build, **device) if on_sim else {})}


# Of this machine.
PLACES = {"--out": "OUT", "--build": "BUILD", "--interpreter": "PYTHON", "--profiles": "PROFILES"}


def command_line(arguments, out=None):
    """A script's arguments, itself first, as others can repeat them. `out`: its folder, as it was given."""
    words = [os.path.relpath(os.path.realpath(arguments[0]), ROOT)]
    for word in arguments[1:]:
        option, equals, _ = word.partition("=")
        if equals and option in PLACES:
            word = f"{option}={PLACES[option]}"
        words.append(PLACES.get(words[-1], "OUT" if word == out else word))
    return shlex.join(words)


def note_command(out, lines):
    """Beside the rows, for claims of them: OUT/NAME.command for OUT/NAME.jsonl."""
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, lines.removesuffix(".jsonl") + ".command"), "w") as file:
        file.write(command_line(sys.argv, str(out)) + "\n")


class Measurement:
    """`measure`, `table` and `bad` are of the script. `options` has out (None: no file) and budget (seconds;
    0: no limit)."""

    def __init__(self, options, places, lines, environment):
        self.options, self.places = options, places
        self.lines = Lines(os.path.join(options.out, lines) if options.out else None)
        if options.out:
            note_command(options.out, lines)
        self.begun = time.monotonic()
        self.end = self.begun + options.budget if options.budget else float("inf")
        self.environment = {**base_environment(with_libraries=False), **environment}
        self.children, self.cut = [], False

    def start(self, command, variables, label):
        """A process that answers with JSON lines; it is over when the run is."""
        child = Talker(command, {**self.environment, **variables},
                       os.path.join(self.options.out, f"{label}.txt"))
        self.children.append(child)
        if self.cut:
            child.end()
        return child

    def preloaded(self, runtime, **more):
        return runtime.variables(LD_PRELOAD=self.places.preload, **more)

    def smt(self, runtime, *words):
        """What the command prints, of the server of `runtime`."""
        done = subprocess.run([self.places.smt, *words], env={**self.environment, **runtime.variables()},
                              capture_output=True, text=True, timeout=60)
        return done.stdout

    def write_kernels(self, runtime, name):
        with open(os.path.join(self.options.out, name), "w") as file:
            file.write(self.smt(runtime, "log", "--kernels"))

    def _cut(self, *_):
        self.cut = True   # before processes are ended, or their errors would count
        sys.exit(143)

    def all(self):
        """The exit code."""
        signal.signal(signal.SIGTERM, self._cut)
        try:
            self.measure()
        finally:
            self.cut = True
            for child in list(self.children):
                child.end()
            self.table()
            sys.stdout.flush()
        return int(self.bad())
