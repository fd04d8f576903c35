"""Where programs run under smt on the simulated device: a runtime folder and a server of its own."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PATIENCE = 90
MANAGED = "ptx=1,wait=10"   # of SMT_COMPILE: kernels are managed from their first launch on


class Place:
    """A runtime folder of its own with a server that offers the simulated device."""

    def __init__(self, smt, programs, **settings):
        self.smt, self.programs = smt, pathlib.Path(programs)
        self.folder = tempfile.TemporaryDirectory()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SMT_")}
        self.environment.update(SMT_RUNTIME_DIR=self.folder.name, SMT_DEVICE="sim", SMT_SIM="grace=1000",
                                SMT_PROFILES="none",
                                # what is tested is the machine, which gives blocks to SMs itself
                                SMT_COMPILE="ptx=0")
        self.simulate(**settings)

    def simulate(self, **items):
        """Items of SMT_SIM for the next server, behind those before: the last counts."""
        self.environment["SMT_SIM"] = ",".join([self.environment["SMT_SIM"],
                                                *(f"{item}={value}" for item, value in items.items())])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0]:
            print(self.log())
        subprocess.run([self.smt, "server", "stop"], env=self.environment, timeout=PATIENCE,
                       capture_output=True)
        log = self.wait_until_ended()
        self.folder.cleanup()
        assert error[0] or not re.search(r"Sanitizer|runtime error:", log), log

    def start(self, tenant, program, *arguments, options=(), stdin=None):
        return subprocess.Popen([self.smt, "run", "--tenant", tenant, *options, "--",
                                 self.programs / f"sim_{program}", *arguments],
                                env=self.environment, stdin=stdin, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def run(self, tenant, program, *arguments, options=()):
        return finish(self.start(tenant, program, *arguments, options=options))

    def log(self):
        return "".join(path.read_text() for path in pathlib.Path(self.folder.name).glob("*.log"))

    def wait_until_ended(self):
        """The log of the server that is gone: what a sanitizer has to say at the very end too."""
        wait_for(lambda: not any(map(runs, re.findall(r"smtd\[(\d+)\]", self.log()))),
                 lambda: "the server did not end:\n" + self.log())
        return self.log()

    def journal(self):
        self.wait_until_empty()
        return self.journal_now()

    def journal_now(self, check=True):
        done = subprocess.run([self.smt, "log", "--json"], env=self.environment, check=check,
                              capture_output=True, text=True,
                              timeout=PATIENCE)
        return done.stdout

    def launches(self):
        entries = [json.loads(line) for line in self.journal().splitlines()]
        return [entry for entry in entries if entry["kind"] == "launch"]

    def wait_for_launch(self, tenant):
        """There may be no journal yet."""
        wait_for(lambda: any(entry.get("tenant") == tenant and entry["kind"] == "launch"
                             for entry in map(json.loads, self.journal_now(check=False).splitlines())),
                 lambda: f"{tenant} launches nothing")

    def wait_for_line(self, text):
        wait_for(lambda: text in self.log(), lambda: f"the log does not say {text}:\n" + self.log())

    def server_status(self):
        return subprocess.run([self.smt, "server", "status"], env=self.environment, check=True,
                              capture_output=True, text=True, timeout=PATIENCE).stdout

    def wait_until_empty(self):
        wait_for(lambda: re.search(r"sessions +0 open(.|\n)*memory +0\.0 MiB device, 0\.0 MiB host",
                                   self.server_status()),
                 lambda: "the server still holds something:\n" + self.server_status())


def wait_for(fact, complaint):
    """Until fact() holds, which no pipe tells of; complaint() says what does not become true."""
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < deadline, complaint()
        time.sleep(0.02)


def runs(pid):
    try:   # a zombie has ended: its parent may be gone
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def finish(process, code=0):
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, f"exit code {process.returncode}, not {code}:\n{output}"
    return output


def run_scenario(scenarios):
    """SMT FOLDER_OF_PROGRAMS SCENARIO of the command line, in `scenarios` by its name."""
    smt, programs, scenario, *more = sys.argv[1:]
    scenarios[scenario](smt, programs, *more)
