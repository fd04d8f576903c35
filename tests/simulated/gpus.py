#!/usr/bin/env python3
"""Several simulated GPUs on a machine, each with a server of its own.

    gpus.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import json
import re
import subprocess

from place import PATIENCE, Place, finish, run_scenario

KEYS = ("simulated", "simulated-1")
FIRST, SECOND = "0 GPU-f0f1f2f3 0000:01:00.0\n", "0 GPU-f1f1f2f3 0000:02:00.0\n"


class Machine(Place):
    def __init__(self, smt, programs, **settings):
        super().__init__(smt, programs, **{"gpus": 2, "grace": 50, **settings})

    def command(self, *words, code=0, **variables):
        done = subprocess.run([self.smt, *words], env={**self.environment, **variables}, capture_output=True,
                              text=True, timeout=PATIENCE)
        assert done.returncode == code, done
        return done.stderr if code else done.stdout

    def program(self, name, *arguments, **variables):
        """Without --gpu: the program sees what its environment shows."""
        return self.command("run", "--", str(self.programs / f"sim_{name}"), *arguments, **variables)

    def tenants(self):
        """By server: the names of those that have a session."""
        servers = map(json.loads, self.command("status", "--json").splitlines())
        return {server["server"]: [tenant["tenant"] for tenant in server["tenants"]] for server in servers}

    def served(self):
        """By server: how many sessions it has had."""
        found = re.findall(r"server (\S+)(?:.|\n)*?, (\d+) served", self.server_status())
        return {key: int(count) for key, count in found}

    def survivor(self, tenant, *options):
        """A program that has a session once this returns, until it is told to end."""
        program = self.start(tenant, "survivor", options=options, stdin=subprocess.PIPE)
        line = program.stdout.readline()
        assert line == "ready\n", line + program.stdout.read()
        return program


def end(program):
    output, _ = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, output


def one_for_each(smt, programs):
    """Each program computes on the GPU that it was given, with a server of its own."""
    with Machine(smt, programs) as machine:
        started = [machine.survivor(f"on{i}", "--gpu", str(i)) for i in (0, 1)]
        assert machine.tenants() == {"simulated": ["on0"], "simulated-1": ["on1"]}, machine.log()
        for i, program in enumerate(started):
            machine.run(f"beside{i}", "work", "2", "8", options=("--gpu", str(i)))
        for program in started:
            end(program)


def gpus_seen(smt, programs):
    """What a program sees is what CUDA_VISIBLE_DEVICES shows; --gpu counts among these."""
    with Machine(smt, programs) as machine:
        assert machine.run("a", "devices", options=("--gpu", "0")) == FIRST
        assert machine.run("a", "devices", options=("--gpu", "1")) == SECOND
        assert machine.program("devices", CUDA_VISIBLE_DEVICES="1") == SECOND
        assert machine.program("devices", CUDA_VISIBLE_DEVICES="GPU-f1") == SECOND
        assert machine.run("a", "devices") == FIRST + SECOND.replace("0", "1", 1)
        machine.environment["CUDA_VISIBLE_DEVICES"] = "1,0"
        assert machine.run("a", "devices") == SECOND + FIRST.replace("0", "1", 1)
        assert machine.run("a", "devices", options=("--gpu", "0")) == SECOND
        assert machine.run("a", "devices", options=("--gpu", "1")) == FIRST
        machine.environment["CUDA_VISIBLE_DEVICES"] = "7"
        assert "CUDA_ERROR_NO_DEVICE" in finish(machine.start("a", "devices"), 1)


def one_of_both(smt, programs):
    """A program that sees both and asks about both has a session with the one that it uses alone."""
    with Machine(smt, programs) as machine:
        machine.run("on0", "devices", "0")
        assert machine.served() == {"simulated": 1, "simulated-1": 0}
        machine.run("on1", "devices", "1")
        assert machine.served() == {"simulated": 1, "simulated-1": 1}


def where(machine):
    """Where --gpu any puts a program that ends at once, without a CUDA call."""
    shown = machine.command("run", "--gpu", "any", "--", "printenv", "CUDA_VISIBLE_DEVICES")
    return {"GPU-f0f1f2f3": 0, "GPU-f1f1f2f3": 1}[shown[:12]]


def any_spreads(smt, programs):
    """Eight programs that start at the same time: four on each GPU."""
    with Machine(smt, programs) as machine:
        started = [machine.start(f"p{i}", "survivor", options=("--gpu", "any"), stdin=subprocess.PIPE)
                   for i in range(8)]
        for program in started:
            line = program.stdout.readline()
            assert line == "ready\n", line + program.stdout.read()
        found = machine.tenants()
        assert [len(found[key]) for key in KEYS] == [4, 4], found
        for program in started:
            end(program)


def any_for_others(smt, programs):
    """What `smt run --env` places counts before its program is there."""
    with Machine(smt, programs) as machine:
        said = [subprocess.run([smt, "run", "--env", "--gpu", "any"], env=machine.environment, check=True,
                               capture_output=True, text=True, timeout=PATIENCE).stdout for _ in range(4)]
        visible = [next(line for line in each.splitlines() if line.startswith("CUDA_VISIBLE_DEVICES="))
                   for each in said]
        assert visible[0] == visible[2] != visible[1] == visible[3], visible


def any_before_sessions(smt, programs):
    """A program that was placed counts from then on, until it ends."""
    with Machine(smt, programs) as machine:
        assert [where(machine) for _ in range(3)] == [0, 0, 0]
        for gpu in "any", "0":
            waiting = subprocess.Popen([smt, "run", "--gpu", gpu, "--", "cat"], env=machine.environment,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            waiting.stdin.write("placed\n")
            waiting.stdin.flush()
            assert waiting.stdout.readline() == "placed\n"
            assert where(machine) == 1
            waiting.communicate(timeout=PATIENCE)
            assert where(machine) == 0
        # That of a child of the program is the program's.
        shell = subprocess.Popen([smt, "run", "--gpu", "any", "--", "sh", "-c",
                                  f"{machine.programs / 'sim_survivor'}; true"],
                                 env=machine.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True)
        assert shell.stdout.readline() == "ready\n"
        second = machine.survivor("second", "--gpu", "any")
        assert machine.tenants()["simulated-1"] == ["second"]
        third = machine.survivor("third", "--gpu", "1")
        assert where(machine) == 0   # one program there, and not two
        for program in shell, second, third:
            end(program)


def any_by_memory(smt, programs):
    """--memory is what a program needs, and what it may come to hold."""
    with Machine(smt, programs, memory="1G") as machine:
        started = [machine.survivor(key, "--gpu", "any", "--memory", "600M") for key in KEYS]
        assert machine.tenants() == {key: [key] for key in KEYS}
        started.append(machine.survivor("large", "--gpu", "1", "--memory", "400M"))
        started += [machine.survivor(f"small{i}", "--gpu", "0", "--memory", "64M") for i in range(2)]
        # GPU 1 has fewer programs, and no room for this one.
        started.append(machine.survivor("last", "--gpu", "any", "--memory", "200M"))
        assert "last" in machine.tenants()["simulated"], machine.tenants()
        told = machine.command("run", "--gpu", "any", "--memory", "2G", "true", code=1)
        assert "no GPU has 2048 MiB of memory" in told and "the largest has 1024 MiB" in told, told
        for program in started:
            end(program)


def gpus_misuse(smt, programs):
    with Machine(smt, programs) as machine:
        for number in "2", "40":
            assert f"there are 2 GPUs, no GPU {number}" in machine.command("run", "--gpu", number, "true",
                                                                           code=1)
        for wrong in "one", "-1", "0x1", "", "0,1", "anything":
            for command in (("run", "--gpu", wrong, "true"), ("server", "start", "--gpu", wrong)):
                assert f"not '{wrong}'" in machine.command(*command, code=2)
        shown = machine.command("run", "--gpu", "1", "true", code=1, CUDA_VISIBLE_DEVICES="1")
        assert "there is 1 GPU, no GPU 1" in shown, shown
        shown = machine.command("run", "--gpu", "0", "true", code=1, CUDA_VISIBLE_DEVICES="7")
        assert "no simulated GPU" in shown and "'7'" in shown, shown
        machine.environment["SMT_SIM"] += ",gpus=99"
        assert "gpus in SMT_SIM is '99'" in machine.command("run", "true", code=1)


def killed_alone(smt, programs):
    """The end of a GPU's server ends the programs on that GPU only."""
    with Machine(smt, programs) as machine:
        survivors = [machine.survivor(f"on{i}", "--gpu", str(i)) for i in (0, 1)]
        started = machine.command("server", "start", "--gpu", "1")
        assert started.startswith("server simulated-1 is running already"), started
        pid = started.split("process ")[1].strip()
        subprocess.run(["kill", "-KILL", pid], check=True)
        output, _ = survivors[1].communicate("on\n", timeout=PATIENCE)
        assert "lost the server" in output and "CUDA_ERROR_DEVICE_UNAVAILABLE" in output, output
        survivors[0].stdin.write("on\n")
        survivors[0].stdin.flush()
        assert survivors[0].stdout.readline() == "on\n"
        end(survivors[0])
        machine.run("next", "work", "2", "8", options=("--gpu", "1"))


def pair(smt, programs, what):
    """One program on both: the same as natively, with a session on each."""
    with Machine(smt, programs) as machine:
        machine.run("both", "pair", what)
        assert machine.served() == {key: 1 for key in KEYS}
        assert "not supported" not in machine.log(), machine.log()


def pair_works(smt, programs):
    pair(smt, programs, "work")


def pair_of_wrong_handles(smt, programs):
    pair(smt, programs, "wrong")
    pair(smt, programs, "devices")


def pair_of_graphs(smt, programs):
    pair(smt, programs, "graphs")


def pair_of_threads(smt, programs):
    pair(smt, programs, "threads")


def pair_reset(smt, programs):
    pair(smt, programs, "reset")


def pair_loses_one(smt, programs):
    """The end of one GPU's server leaves the program its other GPU."""
    with Machine(smt, programs) as machine:
        program = machine.start("both", "pair", "lost", stdin=subprocess.PIPE)
        line = program.stdout.readline()
        assert line == "ready\n", line + program.stdout.read()
        pid = machine.command("server", "start", "--gpu", "1").split("process ")[1].strip()
        subprocess.run(["kill", "-KILL", pid], check=True)
        output, _ = program.communicate("on\n", timeout=PATIENCE)
        assert program.returncode == 0 and "one is left" in output and "lost the server" in output, output


if __name__ == "__main__":
    run_scenario(globals())
