"""The processes of a run: workers, kept alive from phase to phase, one for each role and environment; and
where they run: natively, under an MPS daemon, under servers of smt."""
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from harness import Places, Runtime, base_environment, tail  # noqa: E402
from mps import Mps  # noqa: E402

START_SECONDS, MAKE_SECONDS = 150, 150
MAKING = 8    # processes at once: a training that is made needs all of its memory
BEYOND = 10   # seconds beyond the run's end, after which no answer is waited for


class Failed(Exception):
    """A phase that has no figures. `gone`: its processes are of no more use."""

    def __init__(self, why, gone=True):
        super().__init__(why)
        self.gone = gone


class Worker:
    """A worker.py. Answers come in the order of what is asked; none is waited for long after the deadline."""

    def __init__(self, command, environment, log, deadline):
        self.log, self.deadline, self.made = log, deadline, {}
        with open(log, "w") as errors:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, text=True,
                                            stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
        self.answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.ready = False

    def _read(self):
        for line in self.process.stdout:
            try:
                self.answers.put(json.loads(line))
            except ValueError:
                self.answers.put({"ok": False, "fatal": True, "why": f"no answer: {line[:200]}"})
        self.answers.put(None)

    def errors(self):
        try:
            with open(self.log, errors="replace") as file:
                return tail(file.read().strip(), 1200)
        except OSError:
            return ""

    def say(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            raise Failed(f"{self.name()} is gone: {self.errors()}") from None

    def name(self):
        return f"worker {self.process.pid}"

    def answer(self, seconds):
        try:
            left = self.deadline + BEYOND - time.monotonic()
            found = self.answers.get(timeout=max(0.1, min(seconds, left)))
        except queue.Empty:
            raise Failed(f"{self.name()} does not answer in {seconds:.0f} s: {self.errors()}") from None
        if found is None:
            raise Failed(f"{self.name()} ended with {self.process.wait()}: {self.errors()}")
        if not found.get("ok", True):
            raise Failed(found["why"], found.get("fatal", True))
        return found

    def wait_ready(self):
        if not self.ready:
            self.answer(START_SECONDS)
            self.ready = True

    def ask_to_make(self, program):
        """True: an answer will come."""
        if program in self.made:
            return False
        self.say(f"make {program}")
        return True

    def wait_made(self, program):
        """A program that cannot be made cannot be made later either."""
        try:
            self.made[program] = self.answer(MAKE_SECONDS).get("seconds")
        except Failed as failed:
            if failed.gone:
                raise
            self.made[program] = str(failed)

    def need(self, program):
        self.wait_ready()
        if self.ask_to_make(program):
            self.wait_made(program)
        if isinstance(self.made[program], str):
            raise Failed(f"{program}: {self.made[program]}", False)



def end_all(workers):
    for worker in workers:
        worker.process.terminate()
    end = time.monotonic() + 3
    for worker in workers:
        try:
            worker.process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()


class Stage:
    """A context manager with all processes. key of a worker: the server's settings (None: no server), the
    place (service, first, second) and the variables."""

    def __init__(self, options, families, deadline):
        self.options, self.stub, self.deadline = options, options.stub, deadline
        self.places = Places(options.build, options.preload)
        self.environment = base_environment()
        self.environment["LD_LIBRARY_PATH"] = os.environ.get("LD_LIBRARY_PATH", "")
        self.environment.update(OMP_NUM_THREADS=str(options.threads), PYTHONDONTWRITEBYTECODE="1")
        self.folder = tempfile.mkdtemp(prefix="colocate-")
        self.mps = Mps("mps" if "mps" in families and not self.stub and options.device == "cuda" else "none")
        self.workers, self.runtimes, self.policies, self.count = {}, {}, {}, 0
        self.no_mps = None   # why there is no daemon

    def __enter__(self):
        try:
            self.mps.__enter__()
        except (OSError, subprocess.SubprocessError) as error:
            self.no_mps = f"no MPS daemon: {error}"
            print(self.no_mps, flush=True)
        return self

    def __exit__(self, *_):
        end_all(self.workers.values())
        for runtime in self.runtimes.values():
            runtime.__exit__()
        try:
            self.mps.__exit__()
        except (OSError, subprocess.SubprocessError) as error:
            print(f"the MPS daemon: {error}", flush=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def key(self, mode, place, role, alone=None):
        """Raises LookupError where a setting is of something that is not measured yet."""
        server = tuple(sorted(mode.variables("server").items())) if mode.family == "smt" else None
        roles = [role] if role == place else [role, place]
        variables = {}
        for each in roles:
            variables.update(mode.variables(each, alone))
        if mode.family == "mps":
            variables.update(self.mps.variables)
        return server, mode.family == "mps", place, tuple(sorted(variables.items()))

    def runtime(self, server):
        if server not in self.runtimes:
            settings = {"SMT_IDLE_SECONDS": "0", "SMT_POLICY": "priority", "SMT_COMPILE": "wait=0",
                        **self.simulated(), **dict(server)}
            self.runtimes[server] = Runtime(self.places, **settings)
        return self.runtimes[server]

    def simulated(self):
        return {"SMT_DEVICE": "sim", "SMT_REAL_DRIVER": "none"} if self.stub == "sim" else {}

    def preloads(self, server):
        return server is not None and self.stub != "plain"

    def variables(self, key):
        server, _, place, variables = key
        environment = {**self.environment, **dict(variables)}
        if self.preloads(server):
            self.count += 1   # each is a tenant of its own
            tenant = f"{place}-{self.count}"
            environment.update(self.runtime(server).variables(SMT_TENANT=tenant, **dict(variables)))
            environment["LD_PRELOAD"] = self.places.preload
            if self.stub:
                environment["LD_LIBRARY_PATH"] = os.path.join(self.places.build, "lib", "cudart")
        return environment

    def worker(self, key):
        if key[1] and self.no_mps:
            raise Failed(self.no_mps, False)
        if key not in self.workers:
            device = "stub" if self.stub else self.options.device
            command = [self.options.interpreter, "-B", str(HERE / "worker.py"), "--device", device]
            log = os.path.join(self.folder, f"worker-{time.monotonic_ns()}.txt")
            self.workers[key] = Worker(command, self.variables(key), log, self.deadline)
        return self.workers[key]

    def prepare(self, wanted):
        """Starts the workers {key: programs} at the same time, and makes their programs; all others end. What
        fails is said by the phases that need it."""
        begin = time.monotonic()
        end_all([self.workers.pop(key) for key in list(self.workers) if key not in wanted])
        keys = [key for key in wanted if not (key[1] and self.no_mps)]
        for key in keys:
            self.worker(key)
        for first in range(0, len(keys), MAKING):
            asked = []
            for key in keys[first:first + MAKING]:
                self.unless_failed(key, lambda worker, key=key: (worker.wait_ready(), asked.extend(
                    (key, each) for each in wanted[key] if worker.ask_to_make(each))))
            for key, program in asked:
                self.unless_failed(key, lambda worker, program=program: worker.wait_made(program))
        return time.monotonic() - begin

    def unless_failed(self, key, ask):
        """Asks a worker that has not been given up; where it fails it is."""
        try:
            if key in self.workers:
                ask(self.workers[key])
        except Failed as failed:
            self.discard(key, str(failed))

    def discard(self, key, why):
        """A worker, and all others that may have suffered from what happened to it."""
        print(f"given up: {key[2]} {dict(key[3])}: {why}", flush=True)
        end_all([self.workers.pop(each) for each in list(self.workers)
                 if each == key or each[:2] == key[:2] and (each[0] is not None or each[1])])
        if key[0] in self.runtimes:
            self.runtimes.pop(key[0]).__exit__()
            self.policies.pop(key[0], None)

    def choose(self, mode):
        """The server's policy, once it runs: its programs are ready."""
        if mode.family != "smt" or self.stub == "plain":
            return
        server = self.key(mode, "server", "server")[0]
        if self.policies.get(server) != mode.policy:
            self.smt(server, "policy", "set", mode.policy)
            self.policies[server] = mode.policy

    def write_logs(self, folder):
        for number, server in enumerate(self.runtimes):
            with open(os.path.join(folder, f"kernels-{number}.txt"), "w") as file:
                try:
                    file.write(f"{dict(server)}\n{self.smt(server, 'log', '--kernels')}")
                except (Failed, subprocess.SubprocessError) as error:
                    file.write(f"{error}\n")

    def smt(self, server, *words):
        environment = {**self.environment, **self.runtime(server).variables()}
        done = subprocess.run([self.places.smt, *words], env=environment, capture_output=True, text=True,
                              timeout=60)
        if done.returncode != 0:
            raise Failed(f"smt {' '.join(words)}: {tail(done.stdout + done.stderr, 400)}", False)
        return done.stdout
