#!/usr/bin/env python3
"""Jobs of a Slurm cluster that share simulated GPUs: slurm_test.py BUILD SCENARIO

Needs root, as slurmd does, and Debian's Slurm, installed or unpacked in BUILD/slurm.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys

from cluster import SKIPPED, USERS, Cluster, finish, number_of, slurm_root, wait_for

PROGRAMS = None
WEIGHTS = (3, 1)
OF_USERS = ("jobs", "weights")
ROOM = str((228 << 10) // 2 - (1 << 10) - 256)   # two blocks with so much shared memory fit on an SM


def program(name, *arguments):
    return [str(PROGRAMS / f"sim_{name}"), *map(str, arguments)]


def jobs(root, build):
    """Twenty jobs of two users on two GPUs compute right, and what they are said to have used adds up."""
    with Cluster(root, build, ["gpu=any", "memory_per_share=1M"], ["simulated", "simulated-1"],
                 SMT_SIM="gpus=2,sms=4,grace=1000") as cluster:
        started = [cluster.start("--gres=smt:20", *program("work", 2, 16), user=user)
                   for user in USERS for _ in range(10)]
        ends = [finish(process) for process in started]
        assert all(code == 0 for code, _ in ends), ends
        accounts = cluster.accounted(20)
        used = [each for line in accounts for each in line["used"]]
        assert len({line["job"] for line in accounts}) == 20 and len(used) == 20, accounts
        assert sorted(line["uid"] for line in accounts) == sorted(10 * list(map(number_of, USERS))), accounts
        assert len({each["launches"] for each in used}) == 1 and used[0]["launches"] > 0, used
        totals = [json.loads(line) for line in cluster.smt("log", "--totals").splitlines()]
        assert all(each["tenant"].partition("/")[0] in USERS for each in used), used
        by_tenant = {each["tenant"]: each for each in totals}
        assert by_tenant == {each["tenant"]: each for each in used}, (totals, used)
        assert all(each["sessions"] == each["ended"] == 1 for each in used), used
        by_server = {each["server"]: 0 for each in used}
        for each in used:
            by_server[each["server"]] += 1
        print(by_server)
        assert len(by_server) == 2, by_server
        assert not list(cluster.grants.iterdir()) and not cluster.tenants()


def weights(root, build):
    """Two users' jobs on one GPU get it as their shares say."""
    with Cluster(root, build, ["gpu=0"], ["simulated"], SMT_POLICY="fair", SMT_COMPILE="ptx=1,wait=10",
                 SMT_SIM="sms=4,tenants=2,grace=2000,step_limit=0,dispatch_clock=1") as cluster:
        started = [cluster.start(f"--gres=smt:{shares}", *program("load", 80, ROOM, 4, 10 ** 9, 300_000),
                                 user=user) for user, shares in zip(USERS, WEIGHTS)]
        ends = [finish(process) for process in started]
        assert all(code == 0 for code, _ in ends), ends
        used = sorted(each["gpu_ns"] for line in cluster.accounted(2) for each in line["used"])
        print(used, used[1] / used[0])
        assert 0.85 < used[1] / used[0] / (WEIGHTS[0] / WEIGHTS[1]) < 1.15, used


def ended(root, build):
    """Jobs that are cancelled and killed leave nothing, and are accounted for."""
    with Cluster(root, build, ["gpu=0"], SMT_SIM="sms=4,grace=1000") as cluster:
        for number, how in enumerate(("cancelled", "killed"), 1):
            process = cluster.start("--gres=smt:10", *program("work", 10 ** 6, 16))
            wait_for(lambda: cluster.tenants() == [f"job-{number}"], lambda: str(cluster.tenants()))
            if how == "cancelled":
                cluster.command("scancel", number)
            else:
                os.kill(client_of(cluster), signal.SIGKILL)
            code, said = finish(process)
            assert code != 0, said
            accounts = cluster.accounted(number)
            assert accounts[-1]["job"] == number and accounts[-1]["uid"] == os.getuid(), accounts
            wait_for(lambda: not cluster.tenants(), lambda: str(cluster.tenants()))
            assert not list(cluster.grants.iterdir())
        code, said = finish(cluster.start("--gres=smt:10", *program("work", 1, 16)))
        assert code == 0, said


def client_of(cluster):
    lines = cluster.smt("status", "--json").splitlines()
    (pid,) = [tenant["pid"] for line in lines for tenant in json.loads(line)["tenants"]]
    return pid


def refused(root, build):
    """What is not granted ends the job with a reason; a job that asks for nothing of smt is left alone."""
    with Cluster(root, build, ["most_priority=normal", "gpu=7"], SMT_SIM="sms=4,grace=1000") as cluster:
        for options, text in ((["--gres=smt:1", "--smt-priority=high"],
                               "smt: --smt-priority=high: normal is the most that this cluster grants"),
                              (["--gres=smt:1"], "smt: smt run: "),
                              (["--gres=smt:1", "--smt-priority=urgent"], "Invalid --smt-priority")):
            code, said = finish(cluster.start(*options, *program("work", 1, 16)))
            assert code != 0 and text in said, (options, said)
        code, said = finish(cluster.start("env"))
        assert code == 0 and "LD_PRELOAD" not in said and "SMT_" not in said, said
        wait_for(cluster.is_idle, cluster.logs)   # no job has put the node out of service


def main(build, scenario):
    root = slurm_root(build)
    if os.getuid() != 0 or not root:
        print("slurmd has to be root's" if root else "there is no slurmd: Debian's slurmd, slurmctld")
        return SKIPPED
    global PROGRAMS
    PROGRAMS = pathlib.Path(build) / "bin"
    work = program("work")[0]
    for user in USERS if scenario in OF_USERS else ():
        if subprocess.run(["test", "-x", work], user=number_of(user), cwd="/").returncode != 0:
            print(f"user {user} cannot run {work}")
            return SKIPPED
    globals()[scenario](root, build)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
