"""A cluster of one node: Debian's slurmctld and slurmd, with smt's plugin, and simulated GPUs."""

import ctypes
import fcntl
import json
import os
import pathlib
import pwd
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

PATIENCE = 120
USERS, GROUP = ("games", "news"), "users"   # accounts of every Debian
GRANTS = """[everyone]
weight = 1000
priority = "high"
"""
DAEMONS = ("slurmctld", "slurmd", "slurmstepd")
SKIPPED = 77
# Of sched.h, linux/sockios.h, net/if.h.
CLONE_NEWNET, SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x40000000, 0x8914, 0x8916, 1

CONF = """ClusterName=smt
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=6817
SlurmdPort=6818
SlurmUser=root
AuthType=auth/none
CredType=cred/none
PluginDir={plugins}
PlugStackConfig={folder}/plugstack.conf
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=2
GresTypes=smt
NodeName={host} NodeAddr=127.0.0.1 CPUs=64 Gres=smt:400 State=UNKNOWN
ReturnToService=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def slurm_root(build):
    """Where Debian's packages are installed, or unpacked; None: nowhere."""
    for root in (pathlib.Path(build) / "slurm", pathlib.Path("/")):
        if all((root / f"usr/sbin/{name}-wlm").exists() for name in DAEMONS):
            return root
    return None


def enter_own_network():
    """For this process and what it starts: a network of a loopback alone, as the daemons authenticate no user
    and listen on every address. False: the system makes none."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
        # The C library gives the daemons no address to listen on where 127.0.0.1 is the only one.
        fcntl.ioctl(control, SIOCSIFADDR, struct.pack("16sHH4s16x", b"lo:1", socket.AF_INET, 0,
                                                      socket.inet_aton("127.0.0.2")))
    return True


class Cluster:
    """words: of the plugin's; keys: of the system's servers, which the jobs of several users share; none:
    each user has servers of its own."""

    def __init__(self, root, build, words, keys=(), **environment):
        self.root, self.build, self.keys = root, pathlib.Path(build), keys
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.folder.chmod(0o755)
        self.accounts, self.grants = self.folder / "accounts.jsonl", self.folder / "grants"
        for name in ("state", "spool", "bin"):
            (self.folder / name).mkdir()
        for name in DAEMONS:   # Debian's links; a daemon under another name takes itself for a client
            (self.folder / "bin" / name).symlink_to(root / f"usr/sbin/{name}-wlm")
        self.run = self.folder / "run"
        self.smt_environment = {"SMT_DEVICE": "sim", "SMT_PROFILES": "none", **environment}
        if keys:
            self.run.mkdir()
            shutil.chown(self.run, group=GROUP)
            self.run.chmod(0o750)
            (self.folder / "smt.toml").write_text(GRANTS)
            self.smt_environment.update(SMT_SYSTEM="1", SMT_SYSTEM_DIR=str(self.run),
                                        SMT_SYSTEM_FILE=str(self.folder / "smt.toml"))
        else:
            self.smt_environment["SMT_RUNTIME_DIR"] = str(self.run)
        words = [f"command={self.build}/bin/smt", f"folder={self.grants}", f"accounts={self.accounts}",
                 *words,
                 *(f"env={name}={value}" for name, value in self.smt_environment.items())]
        (self.folder / "plugstack.conf").write_text(
            f"required {self.build}/lib/smt_spank.so {' '.join(words)}\n")
        libraries = root / "usr/lib/x86_64-linux-gnu"
        self.host = socket.gethostname().split(".")[0]
        (self.folder / "slurm.conf").write_text(CONF.format(
            host=self.host, folder=self.folder, plugins=libraries / "slurm-wlm"))
        (self.folder / "gres.conf").write_text("Name=smt Count=400\n")
        self.environment = {"PATH": os.environ["PATH"], "SLURM_CONF": str(self.folder / "slurm.conf"),
                            "LD_LIBRARY_PATH": f"{libraries}:{libraries}/slurm-wlm"}
        self.daemons = []

    def __enter__(self):
        try:
            for key in self.keys:
                self.serve(key)
            self.daemon("slurmctld", "-D")
            self.start_node()
            self.wait_until_idle()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def start_node(self):
        self.node = self.daemon("slurmd", "-D", "-d", self.step_daemon())

    def kill_node(self):
        """slurmd's process, and what it has said; its jobs go on."""
        self.daemons.remove(self.node)
        self.node.kill()
        self.node.wait(timeout=PATIENCE)
        (self.folder / "slurmd.out").rename(self.folder / "slurmd.before.out")

    def give_up_node(self):
        """As the controller does when a node has not answered for SlurmdTimeout."""
        self.command("scontrol", "update", f"nodename={self.host}", "state=down", "reason=gone")

    def log_of_node(self):
        return (self.folder / "slurmd.out").read_text()

    def wait_until_idle(self):
        wait_for(lambda: self.state() == "idle", lambda: f"the node is {self.state()}:\n" + self.logs())

    def state(self):
        """The node's."""
        return self.command("sinfo", "-h", "-o", "%T", check=False).stdout.strip()

    def __exit__(self, *error):
        try:
            if error[0]:
                print(self.logs())
            self.command("scancel", "--state=RUNNING", "--state=PENDING", check=False)
            self.smt("server", "stop", check=False)
        finally:
            killed = [daemon.args for daemon in reversed(self.daemons) if not stops(daemon)]
            shutil.rmtree(self.folder, ignore_errors=True)
        assert error[0] or not killed, f"{killed} did not stop"

    def serve(self, key):
        settings = {name: value for name, value in self.smt_environment.items() if name != "SMT_SYSTEM"}
        with open(self.folder / f"smtd.{key}.out", "w") as out:
            self.daemons.append(subprocess.Popen(
                [self.build / "bin/smtd", "--system", "--key", key], stderr=out, group=GROUP,
                env={**os.environ, **settings, "SMT_CACHE_DIR": str(self.folder / "cache")}))
        wait_for((self.run / f"{key}.sock").exists, self.logs)

    def daemon(self, name, *arguments):
        with open(self.folder / f"{name}.out", "w") as out:
            started = subprocess.Popen([self.folder / "bin" / name, *arguments], stdout=out, stderr=out,
                                       env=self.environment)
        self.daemons.append(started)
        return started

    def step_daemon(self):
        """slurmd gives it no environment, and what is unpacked does not find its libraries by itself."""
        script = self.folder / "slurmstepd"
        script.write_text(f"#!/bin/sh\nLD_LIBRARY_PATH={self.environment['LD_LIBRARY_PATH']} "
                          f"exec {self.folder}/bin/slurmstepd \"$@\"\n")
        script.chmod(0o755)
        return str(script)

    def logs(self):
        found = [*self.folder.glob("*.out"), *self.run.glob("*.log")]
        return "\n".join(f"-- {path.name}\n{path.read_text()[-4000:]}" for path in found)

    def command(self, name, *arguments, check=True):
        done = subprocess.run([self.root / "usr/bin" / name, *map(str, arguments)], env=self.environment,
                              capture_output=True, text=True, timeout=PATIENCE, cwd=self.folder)
        assert not check or done.returncode == 0, f"{name}: {done.stdout}{done.stderr}\n{self.logs()}"
        return done

    def start(self, *arguments, user=None):
        """srun, of a user by name."""
        whose = ["--uid", user, "--gid", GROUP] if user else []
        return subprocess.Popen([self.root / "usr/bin/srun", *whose, *map(str, arguments)],
                                env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, cwd=self.folder)

    def smt(self, *arguments, check=True):
        done = subprocess.run([self.build / "bin/smt", *arguments], capture_output=True, text=True,
                              env={**os.environ, **self.smt_environment}, timeout=PATIENCE)
        assert not check or done.returncode == 0, done
        return done.stdout

    def status(self):
        """Tenants on all servers, by name."""
        lines = self.smt("status", "--json", check=False).splitlines()
        return {tenant["tenant"]: tenant for line in lines for tenant in json.loads(line)["tenants"]}

    def tenants(self):
        return list(self.status())

    def wait_until_running(self, *tenants):
        """What status has of these, which run and no others."""
        wait_for(lambda: set(self.status()) == set(tenants), lambda: f"{self.status()}\n{self.logs()}")
        return self.status()

    def wait_until_clean(self):
        """No program of a job is left in a server, and no grant."""
        wait_for(lambda: not self.status() and not list(self.grants.iterdir()),
                 lambda: f"{self.status()}, {list(self.grants.iterdir())}\n{self.logs()}")

    def accounted(self, jobs):
        """The lines of so many jobs, when their epilogs have written them."""
        def lines():
            return self.accounts.read_text().splitlines() if self.accounts.exists() else []
        wait_for(lambda: len(lines()) >= jobs, lambda: f"{lines()} of {jobs} jobs\n{self.logs()}")
        return [json.loads(line) for line in lines()]


def stops(daemon):
    """As it is told; False: it had to be killed."""
    daemon.terminate()
    try:
        daemon.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
        return False
    return True


def wait_for(fact, complaint):
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < deadline, complaint()
        time.sleep(0.1)


def finish(process, words=None):
    """Its exit code and what it said, also to these words."""
    output, _ = process.communicate(words, timeout=PATIENCE)
    return process.returncode, output


def number_of(user):
    return pwd.getpwnam(user).pw_uid
