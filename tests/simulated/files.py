#!/usr/bin/env python3
"""Memory of tenants in files, where host memory does not suffice (swap_host, swap_folder in SMT_LIMITS), on
the simulated device.

    files.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

from place import PATIENCE, finish, run_scenario, runs, wait_for
from suspend import LARGE, Pauses, end
from turns import TURNS, in_turns

FOR_MOVES = 256   # MiB of host memory that moves may take beside swap_host


class Files(Pauses):
    """A folder on the disk that has the programs, as one for temporary files may be in memory."""

    def __init__(self, smt, programs, host="0", folder=None, **settings):
        super().__init__(smt, programs, **settings)
        self.swap = pathlib.Path(folder or tempfile.mkdtemp(prefix="swap-", dir=self.programs.resolve()))
        self.environment["SMT_LIMITS"] = f"swap_host={host},swap_folder={self.swap}"

    def __exit__(self, *error):
        try:
            super().__exit__(*error)
        finally:
            if self.swap.parent == self.programs.resolve():
                shutil.rmtree(self.swap)

    def on_disk(self):
        """Bytes of the server's file, which has no name; None: it has no such file."""
        for file in pathlib.Path(f"/proc/{self.server_pid()}/fd").iterdir():
            try:
                if os.readlink(file).startswith(f"{self.swap}/"):
                    return os.stat(file).st_blocks * 512
            except OSError:   # closed meanwhile
                continue
        return None

    def wait_for_files(self, tenant):
        """Until all of its memory is in files."""
        wait_for(lambda: self.tenants()[tenant]["file_bytes"] == self.tenants()[tenant]["away_bytes"],
                 lambda: f"not all is in files: {self.tenants()}\n{self.log()}")

    def wait_for_empty_disk(self):
        wait_for(lambda: self.on_disk() < 1 << 20, lambda: f"{self.on_disk()} bytes stay on the disk")
        assert not list(self.swap.iterdir()), list(self.swap.iterdir())

    def bound_files(self, most):
        """As a full disk."""
        resource.prlimit(self.server_pid(), resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def files_same_bits(smt, programs):
    """Without host memory all of it goes to a file, and each word is right in the end."""
    with Files(smt, programs) as place:
        program = place.program("alice", "work")
        for _ in range(2):
            place.smt_says("suspend", "alice")
            place.wait_for_files("alice")
            alice = place.tenants()["alice"]
            assert alice["file_bytes"] > LARGE << 20, alice
            assert place.on_disk() >= alice["file_bytes"], (place.on_disk(), alice)
            assert not list(place.swap.iterdir()), "its file has a name"
            mebibytes = f"{alice['file_bytes'] / 2**20:.1f} MiB"
            assert f"alice is suspended, 0.0 MiB in host memory and {mebibytes} in files" in place.status()
            shown = subprocess.run([smt, "status", "--memory"], env=place.environment, check=True,
                                   capture_output=True, text=True, timeout=PATIENCE).stdout
            assert f"  alice has 0.0 MiB in host memory and {mebibytes} in files\n" in shown, shown
            place.smt_says("resume", "alice")
            assert place.tenants()["alice"]["file_bytes"] == 0
            place.wait_for_empty_disk()
        end(program, "right\n")


def files_part(smt, programs):
    """What has room in host memory stays there."""
    with Files(smt, programs, host="1G") as place:
        program = place.program("alice", "work")
        place.smt_says("suspend", "alice")
        assert place.on_disk() == 0 and place.tenants()["alice"]["file_bytes"] == 0
        place.smt_says("resume", "alice")
        end(program, "right\n")


def files_of_turns(smt, programs):
    """Programs that take turns, with little host memory: moves wait for the disk."""
    with Files(smt, programs) as place:
        in_turns(smt, programs, ("alice", "bob", "carol", "dave"),
                 SMT_LIMITS=f"{TURNS},swap_host=0,swap_folder={place.swap}")
        assert not list(place.swap.iterdir())


def files_full_disk(smt, programs):
    """A disk that is full: what has no room in host memory stays on the device, what has room is kept there,
    the log names the folder, and later all moves."""
    with Files(smt, programs, memory="1G") as place:
        large, answer, _ = place.hold("large", FOR_MOVES + 150)
        assert answer == "CUDA_SUCCESS", answer
        program = place.program("alice", "work")
        place.bound_files(8 << 20)
        said = place.smt_says("suspend", "large", code=1)
        assert re.fullmatch(rf"smt suspend: the file in {re.escape(str(place.swap))} cannot be written: File "
                            r"too large; make room there, or name another folder \(swap_folder in "
                            r"SMT_LIMITS\): nothing has changed\n", said), said
        assert not place.tenants()["large"]["suspended"] and place.tenants()["large"]["away_bytes"] == 0
        place.smt_says("suspend", "alice")
        place.wait_for_line(f"memory of tenants stays in host memory: the file in {place.swap} cannot be "
                            "written: File too large; make room there")
        assert place.tenants()["alice"]["file_bytes"] == 0
        place.bound_files(resource.RLIM_INFINITY)   # the simulated device's memory is files, too
        place.smt_says("resume", "alice")
        place.smt_says("suspend", "large")
        place.wait_for_files("large")
        place.smt_says("suspend", "alice")
        place.smt_says("resume", "alice")
        place.smt_says("resume", "large")
        place.end(large, "large")
        end(program, "right\n")


def files_client_killed(smt, programs):
    """Clients that are killed while their memory moves out, is written, is read, or moves in: nothing of them
    stays."""
    chance = random.Random(7)
    with Files(smt, programs) as place:
        stays = place.program("stays", "work")
        for command in ("suspend", "resume") * 4:
            program = place.program("alice", "work")
            if command == "resume":
                place.smt_says("suspend", "alice")
            asks = subprocess.Popen([smt, command, "alice"], env=place.environment,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0, 0.1))   # wherever it is; no order is relied on
            program.kill()
            finish(program, -9)
            asks.wait(PATIENCE)
            wait_for(lambda: "alice" not in place.tenants(), lambda: f"alice stays: {place.status()}")
            place.wait_for_empty_disk()
        end(stays, "right\n")
        place.wait_until_empty()


def files_server_killed(smt, programs):
    """The server is killed while memory moves: its file is gone with it, and the next server is whole."""
    chance = random.Random(8)
    with Files(smt, programs) as place:
        for command in ("suspend", "resume") * 3:
            program = place.program("alice", "work")
            if command == "resume":
                place.smt_says("suspend", "alice")
                place.wait_for_files("alice")
            asks = subprocess.Popen([smt, command, "alice"], env=place.environment,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            server = place.server_pid()
            time.sleep(chance.uniform(0, 0.1))
            os.kill(server, signal.SIGKILL)
            wait_for(lambda: not runs(server), lambda: "the server does not end")
            asks.wait(PATIENCE)
            output = program.communicate("end\n", timeout=PATIENCE)[0]
            assert program.returncode > 0 and "right" not in output, (program.returncode, output)
            assert not list(place.swap.iterdir())
        again = place.program("alice", "work")
        assert place.on_disk() == 0
        end(again, "right\n")


def files_misuse(smt, programs):
    """Folders that cannot have a file: the log says why, and host memory is all there is."""
    for folder, why in (("/dev/shm", "it is in memory (a tmpfs), which files are to spare; name a "
                                      "folder on a disk"),
                        ("/proc/there", "no file can be made there: No such file or directory; name a folder "
                                        "that the server may write to")):
        with Files(smt, programs, host="1G", folder=folder) as place:
            program = place.program("alice", "work")
            place.wait_for_line("memory of tenants does not go to files: swap_folder in SMT_LIMITS is "
                                f"{folder}: {why}")
            said = json.loads(place.smt_says("suspend", "alice", "--json"))
            assert said["moved_bytes"] > LARGE << 20 and said["file_bytes"] == 0, said
            place.smt_says("resume", "alice")
            end(program, "right\n")


if __name__ == "__main__":
    run_scenario(globals())
