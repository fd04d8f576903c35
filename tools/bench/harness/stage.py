"""Where co-runs happen: one server whose policy is changed, and one MPS daemon, for a whole run of corun.py
or tenants.py."""
import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading

from harness import Child, Lines, Places, Runtime, base_environment, run, tail
from metrics import begin_of, makespan_stp, progress
from printed import ARRIVALS, CHECKSUM, ENDS, TIMES, numbers, read_checksums

# Without smt. Under all others programs run in the server's context, by the policy of that name; under
# "one-context" in another server's, where kernels are as the programs have them and tenants' priorities are
# those of their streams.
NATIVE = ("alone", "time-sliced", "mps", "mps-priority", "mps-percent")
PLAIN = "one-context"
# slice, in a server that also knows what smt profile --pair said of every two: Kernelet's OPT
MEASURED = "slice-measured"
CUT = 128 + signal.SIGTERM   # the exit code of a run that is cut off


class Stage:
    """A context manager: server and daemon leave with it."""
    starting, cut = False, False   # of all of a process

    def __init__(self, options, lines, **settings):
        self.options = options
        self.places = Places(options.build, options.preload)
        self.lines = Lines(os.path.join(options.out, lines))
        self.checksums = read_checksums(options.checksums)
        self.environment = base_environment()
        self.size = options.size
        self.simulated = options.device == "sim"   # to try a script: everything runs under smt
        if self.simulated:
            self.environment.update(SMT_DEVICE="sim", SMT_REAL_DRIVER="none",
                                    LD_LIBRARY_PATH=os.path.join(self.places.build, "lib", "cudart"))
        profiles = os.path.abspath(options.profiles or options.out)
        self.stores = {"alone": os.path.join(profiles, "profiles.db"),
                       "pairs": os.path.join(profiles, "profiles-of-pairs.db")}
        self.runtime = Runtime(self.places, SMT_IDLE_SECONDS="0", SMT_POLICY="fifo",
                               SMT_PROFILES=self.stores["alone"], **settings)
        self.plain = Runtime(self.places, SMT_IDLE_SECONDS="0", SMT_POLICY="fifo", SMT_COMPILE="ptx=0")
        measured = Runtime(self.places, SMT_IDLE_SECONDS="0", SMT_POLICY="slice",
                           SMT_PROFILES=self.stores["pairs"])
        self.others = {PLAIN: self.plain, MEASURED: measured}   # of modes with a server of their own
        self.mps_folder = tempfile.mkdtemp(prefix="smt-mps-")
        self.mps = {"CUDA_MPS_PIPE_DIRECTORY": self.mps_folder, "CUDA_MPS_LOG_DIRECTORY": self.mps_folder}
        self.mps_runs = False
        self.policy = None
        self.starts = threading.Lock()
        self.children = []    # programs, of which some may have ended
        self.computing = []   # processes that keep cores busy
        self.wrong = 0
        self.alone = {}   # name: launches a second, natively and alone
        self.leads = {}   # name: seconds from its start until it computes, natively and alone
        self.laps = {}    # name: launches that are timed in an iteration

    def __enter__(self):
        if self.simulated:
            # starts it
            self.finish("vector_add", self.start("vector_add", 1, "fifo", size="trivial"), "trivial")
        else:
            self.smt("server", "start")
        return self

    @classmethod
    def cut_off(cls, *_):
        """A handler of SIGTERM. A program that is being started is known before the run ends, and ends with
        it: left alone it would start a server of its own."""
        Stage.cut = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if not Stage.starting:
            sys.exit(CUT)

    def serve(self, mode, **settings):
        """A server for this mode alone, until leave()."""
        self.others[mode] = Runtime(self.places, SMT_IDLE_SECONDS="0", **settings)
        self.wake(mode)

    def wake(self, mode):
        """Starts the server of a mode with one of its own, so that no program waits for it."""
        if not self.simulated:   # there the first program starts it
            variables = self.others[mode].variables()
            run([self.places.smt, "server", "start"], {**self.environment, **variables}, None, 60)

    def leave(self, mode):
        self.others.pop(mode).__exit__()

    def compute(self, processes):
        """From now on so many processes compute, natively and all the time."""
        self.computing += [subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True)
                           for _ in range(processes)]

    def __exit__(self, *_):
        for child in self.children:   # of a run that is cut off
            child.kill_all()
        for each in self.computing:
            each.kill()
            each.wait()
        for runtime in (self.runtime, *self.others.values()):
            runtime.__exit__()
        if self.mps_runs:
            subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", env={**os.environ, **self.mps},
                           timeout=30, check=False)
        shutil.rmtree(self.mps_folder, ignore_errors=True)

    def smt(self, *words, timeout=60, **variables):
        done = run([self.places.smt, *words], {**self.environment, **self.runtime.variables(**variables)},
                   None, timeout)
        if done["rc"] != 0:
            print(f"smt {' '.join(words)}: {done['rc']} {done['out']}{done['err']}", flush=True)
        return done["out"]

    def choose(self, mode):
        """Everything started from now on runs in this mode."""
        if mode.startswith("mps") and not self.mps_runs and not self.simulated:
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **self.mps},
                           timeout=20, check=False)
            self.mps_runs = True
        if mode not in NATIVE and mode not in self.others and mode != self.policy:
            self.smt("policy", "set", mode)
            self.policy = mode

    def child(self, command, mode, tenant="one", urgent=False, **settings):
        """settings: weight, sms, stress, percent (of the threads, under mps-percent). Any thread."""
        with self.starts:
            self.children = [each for each in self.children if each.process.poll() is None]
            Stage.starting = True
            try:
                child = self._child(command, mode, tenant, urgent, **settings)
                self.children.append(child)
            finally:
                Stage.starting = False
        if Stage.cut:
            sys.exit(CUT)
        return child

    def _child(self, command, mode, tenant, urgent, **settings):
        if mode in NATIVE and not self.simulated:
            variables = dict(self.mps) if mode.startswith("mps") else {}
            if mode == "mps-priority":
                variables["CUDA_MPS_CLIENT_PRIORITY"] = "0" if urgent else "1"
            if mode == "mps-percent":
                variables["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(settings.get("percent", 50))
            return Child(command, {**self.environment, **variables}, None, 60)
        runtime = self.others.get(mode, self.runtime)
        variables = runtime.variables(SMT_TENANT=tenant, SMT_PRIORITY="high" if urgent else "normal",
                                      SMT_WEIGHT=str(settings.get("weight", 1)),
                                      SMT_SMS=str(settings.get("sms", 0)),
                                      SMT_STRESS=str(settings.get("stress", 0)))
        return Child(command, {**self.environment, **variables}, self.places.preload,
                     120 if self.simulated else 60)

    def start(self, name, iterations, mode, **more):
        """more: of child(); size; arrivals: mean ms, seed and the second of time.monotonic() of the first."""
        arrivals = more.pop("arrivals", None)
        command = [os.path.join(self.options.programs, name), "--size", more.pop("size", self.size),
                   "--iterations", str(iterations), "--times"]
        command += ["--arrivals", "{:.6f},{},{:.6f}".format(*arrivals)] if arrivals else []
        return self.child(command, mode, tenant=more.pop("tenant", name), **more)

    def finish(self, name, child, size=None):
        done = child.finish()
        checksum = CHECKSUM.search(done["out"])
        ok = done["rc"] == 0 and bool(checksum) and checksum[1] == self.checksums[name, size or self.size]
        self.wrong += not ok
        more = {} if ok else {"rc": done["rc"], "out": tail(done["out"]), "err": tail(done["err"])}
        row = {"program": name, "ok": ok, "ends_s": numbers(ENDS, done["out"]),
               "times_ms": numbers(TIMES, done["out"]), "seconds": done["seconds"], **more}
        if arrivals := numbers(ARRIVALS, done["out"]):
            row["arrivals_s"] = arrivals
        if row["ends_s"]:
            row["lead_s"] = round(begin_of(row) - child.started, 6)   # until it computes
        return row

    def measure_alone(self, name):
        """Its rate, natively; and it has been through the server once, where its managed form is compiled."""
        if name in self.alone:
            return
        self.choose("alone")
        self.laps[name] = max(1, len(self.finish(name, self.start(name, 3, "fifo"))["ends_s"]) // 3)
        for iterations in (20, None):
            wanted = iterations or max(20, int(self.options.length * self.alone[name]))
            row = self.finish(name, self.start(name, wanted, "alone"))
            ends = row["ends_s"]
            self.alone[name] = ((len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 and
                                ends[-1] > ends[0] else 1)
        self.leads[name] = row.get("lead_s", 0)
        self.lines.add(part="alone", rate=self.alone[name], **row)

    def profile(self, name, *options):
        """What smt profile finds of it is known to servers' policies from then on."""
        device = ["--device", "sim"] if self.simulated else []
        # a sweep has a launch for each of its points
        iterations = "30" if "--sweep" in options and not self.simulated else "6"
        found = self.smt("profile", *options, *device, "--", os.path.join(self.options.programs, name),
                         "--size", self.size, "--iterations", iterations, timeout=120)
        self.lines.add(part="profile", program=name, options=options, found=tail(found, 4000))

    def measure_pairs(self, names, seconds):
        """Every two side by side, in a copy of the store; each program for so long, alone."""
        if os.path.exists(self.stores["pairs"]):
            os.unlink(self.stores["pairs"])
        with sqlite3.connect(self.stores["alone"]) as store:
            store.execute("VACUUM INTO ?", (self.stores["pairs"],))
        device = ["--device", "sim"] if self.simulated else []
        command = lambda name: [os.path.join(self.options.programs, name), "--size",
                                self.size, "--iterations",
                                str(max(10, int(seconds * self.alone[name]))) if not self.simulated else "6"]
        for first, second in itertools.combinations(names, 2):
            found = self.smt("profile", "--pair", "--runs", "2", *device, "--", *command(first), "--",
                             *command(second), timeout=120, SMT_PROFILES=self.stores["pairs"])
            self.lines.add(part="pair", programs=(first, second), found=tail(found, 6000))
            print(found, flush=True)

    def iterations(self, name, times=1.0):
        """As many as take so many times options.length, alone."""
        return 6 if self.simulated else max(10, int(times * self.options.length * self.alone[name]))

    def together(self, names, mode, times=2.0, **more):
        """Programs at once, each for so many lengths; their rows."""
        self.choose(mode)
        weights = more.pop("weights", [1] * len(names))
        children = [self.start(name, self.iterations(name, times), mode, tenant=f"{'abcdefgh'[index]}-{name}",
                               weight=weights[index])
                    for index, name in enumerate(names)]
        rows = [self.finish(name, child) for name, child in zip(names, children)]
        return rows

    def launch_s(self, row):
        """Of a program, natively and alone."""
        return 1 / self.alone[row["program"]]

    def makespan_speedup(self, rows):
        return makespan_stp([(row, self.launch_s(row)) for row in rows])

    def rates(self, rows):
        """Of each, in units of its rate alone, while all worked; None where they did not long enough."""
        return progress([(row, self.launch_s(row)) for row in rows],
                        0 if self.simulated else self.options.length / 4)
