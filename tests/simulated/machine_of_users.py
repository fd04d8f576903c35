"""One server for several Unix users (smtd --system), on the simulated device: the server, its users and a
stranger are processes with uids of their own, which have no accounts. Only root can start these: without, a
scenario is skipped (exit code 77)."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from place import PATIENCE, finish, wait_for

EXIT_SKIPPED = 77
KEY = "simulated"
BYTES = 4 << 20
# Of each scenario its own, as several may run at once.
FIRST = 20000 + os.getpid() % 10000 * 4
SERVER, ALICE, BOB, STRANGER = range(FIRST, FIRST + 4)


class Skipped(Exception):
    pass


class Machine:
    """A folder that root made, with a server in it, and what users do there. Group SERVER may use it."""

    def __init__(self, smt, programs, grants="", one_context=0, **settings):
        self.smt, self.programs = pathlib.Path(smt), pathlib.Path(programs)
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.root.chmod(0o755)
        self.folder, self.cache = self.root / "smt", self.root / "cache"
        for folder, mode in (self.folder, 0o750), (self.cache, 0o700):
            folder.mkdir()
            os.chown(folder, SERVER, SERVER)
            folder.chmod(mode)
        (self.root / "smt.toml").write_text(grants)
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith(("SMT_", "XDG_", "HOME"))}
        self.environment.update(SMT_SYSTEM_DIR=str(self.folder), SMT_SYSTEM_FILE=str(self.root / "smt.toml"),
                                SMT_DEVICE="sim", SMT_SIM=f"grace=20,one_context={one_context}",
                                SMT_PROFILES="none",
                                SMT_COMPILE="ptx=0",
                                **{name: value.format(root=self.root) for name, value in settings.items()})
        self.log_file = (self.root / "server.log").open("w")
        self.server = None

    def __enter__(self):
        try:
            self.start_server()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *error):
        if error[0]:
            print(self.log())
        code = self.stop_server() if self.server else None
        self.log_file.close()
        shutil.rmtree(self.root)
        for user in ALICE, BOB, STRANGER:
            shutil.rmtree(f"/tmp/smt-{user}", ignore_errors=True)
        assert error[0] or code == 0, f"the server ended with {code}"

    def start_server(self, **settings):
        smtd = self.smt.parent / "smtd"
        environment = {**self.environment, "SMT_CACHE_DIR": str(self.cache), **settings}
        self.server = subprocess.Popen([smtd, "--system", "--key", KEY], env=environment,
                                       stderr=self.log_file, user=SERVER, group=SERVER, extra_groups=[])
        wait_for(lambda: (self.folder / f"{KEY}.sock").exists() or self.server.poll() is not None,
                 lambda: "the server does not start:\n" + self.log())

    def stop_server(self):
        self.server.send_signal(signal.SIGTERM)
        try:
            return self.server.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.server.kill()
            return self.server.wait()

    def log(self):
        return (self.root / "server.log").read_text()

    def as_user(self, user, **settings):
        """How subprocess starts something of the user. Root needs no group; a stranger has none."""
        groups = [SERVER] if user in (ALICE, BOB) else []
        return {"user": user, "group": user, "extra_groups": groups,
                "env": {**self.environment, **settings}, "text": True, "cwd": "/"}

    def command(self, user, *words, code=0, **settings):
        done = subprocess.run([self.smt, *words], capture_output=True, timeout=PATIENCE,
                              **self.as_user(user, **settings))
        assert done.returncode == code, done
        return done.stdout + done.stderr

    def status(self, user):
        """Tenants by name, and the server's own line."""
        server, = map(json.loads, self.command(user, "status", "--json").splitlines())
        return {tenant["tenant"]: tenant for tenant in server["tenants"]}, server

    def looks(self, *command):
        """What BOB sees with a command that is not smt's."""
        return subprocess.run(command, capture_output=True, timeout=PATIENCE, **self.as_user(BOB))

    def processes_of(self, *users):
        def owner(process):
            try:
                return process.stat().st_uid
            except FileNotFoundError:   # it has ended
                return None
        return [process.name for process in pathlib.Path("/proc").iterdir()
                if process.name.isdigit() and owner(process) in users]

    def party(self, user, tenant="train", options=(), **settings):
        return Party(self, user, tenant, options, **settings)


class Party:
    """A program of a user that obeys commands (programs/shares.cpp)."""

    def __init__(self, machine, user, tenant, options, command=None, **settings):
        run = [machine.smt, "run", "--tenant", tenant, *options, "--", machine.programs / "sim_shares"]
        self.process = subprocess.Popen(command or run, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, **machine.as_user(user, **settings))

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line.endswith("\n"), f"it ended: {self.process.wait(timeout=PATIENCE)}"
        return line.strip()

    def end(self):
        finish(self.process)

    def last_words(self):
        """Of one that cannot begin."""
        self.process.stdin.write("allocate 64\n")
        output, _ = self.process.communicate(timeout=PATIENCE)
        return output


def name(user, tenant="train"):
    return f"{user}/{tenant}"


def check_others(smt):
    """Programs of several users can be started, and run what is built."""
    if os.geteuid() != 0:
        raise Skipped("only root can start programs of several users")
    reached = subprocess.run(["test", "-x", smt], user=ALICE, group=ALICE, extra_groups=[])
    if reached.returncode != 0:
        raise Skipped(f"other users cannot run {smt}")


def run_scenario(scenarios, before=lambda smt: None):
    """SMT PROGRAMS SCENARIO of the command line, in `scenarios` by its name. The exit code."""
    smt, programs, scenario = sys.argv[1:]
    try:
        before(smt)
        scenarios[scenario](os.path.realpath(smt), os.path.realpath(programs))
    except Skipped as why:
        print(f"skipped: {why}")
        return EXIT_SKIPPED
    return 0
