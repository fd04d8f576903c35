"""Programs run natively or preloaded, and servers are asked: what every script of tools/bench and tests/gpu
needs.

Every preloaded run gets a runtime directory of its own unless it is told to share one, so that its
server, journal and log are its own. Standard library only.
"""
import glob
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))

# runtime/protocol/handshake.h and version.h
MAGIC = 0x31544D53
WAITS = "wait=10"   # of SMT_COMPILE, for what measures: managed from the first launch on
KIND_HELLO, KIND_WELCOME, KIND_STATUS, KIND_STOP = 1, 2, 6, 7
STATUS_REPLY = struct.Struct("<IIiIIIQQQQQIIQ32s256sIIQQQ")


class Places:
    """Where the things under test lie."""

    def __init__(self, build, preload=None, programs=None, kind="static"):
        self.build = os.path.abspath(build)
        self.preload = preload or os.path.join(self.build, "lib", "libsmt.so")
        self.programs = programs or os.path.join(self.build, "bin", "gpu")
        self.smt = os.path.join(self.build, "bin", "smt")
        self.kind = kind

    def program(self, name, kind=None):
        return os.path.join(self.programs, kind or self.kind, name)


def library_folders():
    """Folders of shared CUDA libraries, which are not always on the loader's path."""
    folders = [os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "lib64")]
    folders += sorted(glob.glob("/usr/local/cuda-1[3-9]*/lib64"))
    for site in glob.glob("/opt/*/.venv/lib/python3*/site-packages") + glob.glob(
        "/usr/lib/python3*/site-packages"):
        folders += glob.glob(os.path.join(site, "nvidia", "cu13",
                                          "lib")) + glob.glob(os.path.join(site, "nvidia", "*", "lib"))
    found = []
    for folder in folders:
        wanted = any(glob.glob(os.path.join(folder, f"lib{name}.so.*"))
                     for name in ("cudart", "cublas", "cudnn", "cufft"))
        if wanted and folder not in found:
            found.append(folder)
    return found


def base_environment(with_libraries=True):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SMT_") and k != "LD_PRELOAD"}
    if with_libraries:
        known = [f for f in environment.get("LD_LIBRARY_PATH", "").split(":") if f]
        environment["LD_LIBRARY_PATH"] = ":".join(known + [f for f in library_folders() if f not in known])
    environment["PYTHONUNBUFFERED"] = "1"
    return environment


class Runtime:
    """A runtime directory and the servers that live there. A context manager: leaves nothing behind."""

    def __init__(self, places, **settings):
        self.places = places
        self.directory = tempfile.mkdtemp(prefix="smt-test-")
        os.chmod(self.directory, 0o700)
        self.settings = {"SMT_IDLE_SECONDS": "60", "SMT_COMPILE": WAITS, **settings}
        self.served_before, self.unsupported_before = 0, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def variables(self, **more):
        return {"SMT_RUNTIME_DIR": self.directory, **self.settings, **more}

    def _ask(self, kind, timeout=2.0):
        """What each server answers. Not strict tenants' (GPU@TENANT), which end with their programs."""
        for path in glob.glob(os.path.join(self.directory, "*.sock")):
            if "@" in os.path.basename(path):
                continue
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                    connection.settimeout(timeout)
                    connection.connect(path)
                    connection.send(struct.pack("<II", kind, MAGIC))
                    data = connection.recv(4096)
                fields = STATUS_REPLY.unpack(data[:STATUS_REPLY.size])
                names = ("kind", "version", "pid", "sessions", "lanes", "multiprocessors",
                         "sessions_served", "launches",
                         "device_bytes", "host_bytes", "uptime_ms", "tenants", "others", "other_bytes",
                         "policy", "device", "takes_over", "carried", "pinned_bytes", "made_bytes",
                         "making_us")
                yield dict(zip(names, fields))
            except (OSError, struct.error):
                continue

    def status(self):
        """Of the first server that answers."""
        return next(self._ask(KIND_STATUS), None)

    def mark(self):
        """served() and unsupported() count from here on."""
        self.served_before = (self.status() or {}).get("sessions_served", 0)
        self.unsupported_before = self._count_unsupported() if self.served_before else {}

    def served(self, wanted, patience=1.0):
        """How many sessions the server has served, once it has counted `wanted` or time is up."""
        end = time.monotonic() + patience
        while True:
            served = (self.status() or {}).get("sessions_served", 0) - self.served_before
            if served >= wanted or time.monotonic() > end or not self.server_pids():
                return served
            time.sleep(0.05)

    def server_pids(self):
        """The smtd processes that were started for this directory."""
        wanted = b"SMT_RUNTIME_DIR=" + self.directory.encode()
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/comm") as file:
                    if not file.read().startswith("smtd"):
                        continue
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if wanted in file.read().split(b"\0"):
                        found.append(int(entry))
            except OSError:
                continue
        return found

    def stop(self, patience=15.0):
        for _ in self._ask(KIND_STOP):
            pass
        end = time.monotonic() + patience
        while self.server_pids() and time.monotonic() < end:
            time.sleep(0.05)
        left = self.server_pids()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not left

    def log(self, characters=3000):
        text = ""
        for path in glob.glob(os.path.join(self.directory, "*.log")):
            try:
                with open(path, errors="replace") as file:
                    text += file.read()
            except OSError:
                pass
        return text[-characters:]

    def unsupported(self):
        """Counts by name of the unsupported functions met, or a string that says why not known."""
        counts, before = self._count_unsupported(), self.unsupported_before
        if isinstance(counts, str) or isinstance(before, str):
            return counts
        return {name: count - before.get(name, 0) for name, count in counts.items()
                if count > before.get(name, 0)}

    def _count_unsupported(self):
        try:
            done = subprocess.run(["timeout", "-k", "2", "20", self.places.smt, "log", "--json"], text=True,
                                  env={**base_environment(), **self.variables()}, capture_output=True)
        except OSError as error:
            return str(error)
        if done.returncode != 0:
            return "smt log: " + (done.stderr.strip() or f"exit code {done.returncode}")[-300:]
        by_session = {}
        for line in done.stdout.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry.get("kind") == "unsupported":
                key = (entry.get("name", "?"), entry.get("session"))
                # grows by doubling; exact at the session's end
                by_session[key] = max(by_session.get(key, 0), entry.get("value", 1))
        counts = {}
        for (name, _), calls in by_session.items():
            counts[name] = counts.get(name, 0) + calls
        return counts


class Child:
    """A started program. Its output is collected without blocking; `pid` is the program's own."""

    def __init__(self, command, environment, preload=None, timeout=60, stdin=False, guard=True):
        # env sets LD_PRELOAD, so that timeout itself is not preloaded.
        # With guard=False there is no timeout process between: kill() then reaches the program.
        prefix = ["timeout", "-k", "5", str(timeout)] if guard else []
        middle = ["env", "LD_PRELOAD=" + preload] if preload else []
        self.started = time.monotonic()
        self.timeout = timeout
        self.process = subprocess.Popen(prefix + middle + command, env=environment, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True,
                                        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL)
        self.out, self.err, self.ended = b"", b"", None
        self.ready = threading.Event()
        self.threads = [threading.Thread(target=self._read, args=(self.process.stdout, "out"), daemon=True),
                        threading.Thread(target=self._read, args=(self.process.stderr, "err"), daemon=True)]
        for thread in self.threads:
            thread.start()

    def _read(self, pipe, name):
        while True:
            data = os.read(pipe.fileno(), 65536)
            if not data:
                break
            setattr(self, name, getattr(self, name) + data)
            if name == "out" and b"READY" in self.out:
                self.ready.set()
        self.ended = time.monotonic()

    def wait_ready(self, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.ready.is_set() and self.process.poll() is None:
            self.ready.wait(0.02)
        return self.ready.is_set()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)

    def kill_all(self):
        """The program and what guards it, unless they have ended."""
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()

    def tell(self):
        """A line on its standard input, unless it has ended."""
        try:
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()
        except OSError:
            pass

    def close_input(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass

    def _wait(self, seconds):
        """The exit code, as soon as there is one: with a bound Popen.wait looks every 50 ms at last, and the
        time of a short program would come in such steps."""
        try:
            descriptor = os.pidfd_open(self.process.pid)
        except (AttributeError, OSError):   # an older Python or Linux, or its end was seen before
            return self.process.wait(seconds)
        try:
            ends = select.poll()
            ends.register(descriptor, select.POLLIN)
            ended = ends.poll(seconds * 1000)
        finally:
            os.close(descriptor)
        return self.process.wait(None if ended else 0)

    def finish(self, extra=10):
        """Waits for the end and returns {rc, out, err, seconds}; rc 124: it took too long."""
        left = max(1.0, self.timeout + extra - (time.monotonic() - self.started))
        try:
            rc = self._wait(left)
        except subprocess.TimeoutExpired:
            self.kill_all()
            rc = 124
        seconds = time.monotonic() - self.started
        for thread in self.threads:
            thread.join(2)
        return {"rc": rc, "out": self.out.decode(errors="replace"), "err": self.err.decode(errors="replace"),
                "seconds": round(seconds, 3)}


def run(command, environment, preload=None, timeout=60):
    try:
        return Child(command, environment, preload, timeout).finish()
    except OSError as error:
        return {"rc": 127, "out": "", "err": str(error), "seconds": 0}


def nvidia_smi(*query):
    try:
        done = subprocess.run(["timeout", "-k", "2", "15", "nvidia-smi", *query],
                              capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None
    except OSError:
        return None


def compute_apps():
    """[(pid, name, MiB)] of the processes that hold the GPU, or None where nvidia-smi is missing."""
    text = nvidia_smi("--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader,nounits")
    if text is None:
        return None
    apps = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) < 3 or not fields[0].isdigit():
            continue
        name = os.path.basename(fields[1])
        if not re.match(r"[\w.]", name):
            try:
                with open(f"/proc/{fields[0]}/comm") as file:
                    name = file.read().strip()
            except OSError:   # it has ended since, and nvidia-smi did not find its name either
                continue
        apps.append((int(fields[0]), name, int(fields[2]) if fields[2].isdigit() else -1))
    return apps


def gpu_memory_used():
    text = nvidia_smi("--query-gpu=memory.used", "--format=csv,noheader,nounits")
    return int(text.split()[0]) if text and text.split() and text.split()[0].isdigit() else None


class Watch(threading.Thread):
    """Polls nvidia-smi and remembers which processes held the GPU."""

    def __init__(self):
        super().__init__(daemon=True)
        self.polls, self.names, self.most, self.available, self._over = 0, {}, 0, True, threading.Event()

    def run(self):
        while not self._over.is_set():
            apps = compute_apps()
            if apps is None:
                self.available = False
                return
            self.polls += 1
            self.most = max(self.most, len(apps))
            for _, name, _ in apps:
                self.names[name] = self.names.get(name, 0) + 1
            self._over.wait(0.05)

    def finish(self):
        self._over.set()
        self.join(20)
        others = sorted(name for name in self.names if name != "smtd")
        return {"polls": self.polls, "seen": self.names, "most_at_once": self.most,
                "available": self.available,
                "ok": self.available and self.polls > 0 and not others, "others": others}


class Lines:
    """A file of JSON lines, written as results come."""

    def __init__(self, path):
        if path:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        self.file = open(path, "w", buffering=1) if path else None
        self.lock = threading.Lock()
        self.all = []

    def add(self, **fields):
        with self.lock:
            self.all.append(fields)
            if self.file:
                self.file.write(json.dumps(fields) + "\n")
        return fields


def tail(text, characters=1200):
    return text if len(text) <= characters else "..." + text[-characters:]
