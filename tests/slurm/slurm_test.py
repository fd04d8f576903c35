#!/usr/bin/env python3
"""Jobs of a Slurm cluster that share simulated GPUs: slurm_test.py BUILD SCENARIO

Needs root, as slurmd does and a network of its own, and Debian's Slurm, installed or unpacked in BUILD/slurm.
"""
import collections
import json
import os
import pathlib
import pwd
import signal
import subprocess
import sys

from cluster import SKIPPED, USERS, Cluster, enter_own_network, finish, number_of, slurm_root, wait_for

PROGRAMS = None
WEIGHTS = (3, 1)
SHARES = dict(zip(USERS, (30, 10)))
ENDS = ("cancelled", "killed")
OF_USERS = ("jobs", "weights", "limits")
ROOM = str((228 << 10) // 2 - (1 << 10) - 256)   # two blocks with so much shared memory fit on an SM


def program(name, *arguments):
    return [str(PROGRAMS / f"sim_{name}"), *map(str, arguments)]


def jobs(root, build):
    """Twenty jobs of two users on two GPUs have the weight and the memory of their shares. One of each user's
    is cancelled and one is killed; the others compute right. Nothing is left, and what all are said to have
    used is what the servers have done."""
    with Cluster(root, build, ["gpu=any", "memory_per_share=1M"], ["simulated", "simulated-1"],
                 SMT_SIM="gpus=2,sms=4,grace=1000", SMT_JOURNAL="gpu_time") as cluster:
        endless = [cluster.start(f"--gres=smt:{SHARES[user]}", *program("work", 10 ** 6, 16), user=user)
                   for user in USERS for _ in ENDS]
        wait_for(lambda: len(cluster.status()) == len(endless), cluster.logs)
        victims = cluster.status()
        others = [cluster.start(f"--gres=smt:{SHARES[user]}", *program("work", 2, 16), user=user)
                  for user in USERS for _ in range(8)]
        for name, tenant in victims.items():
            shares = SHARES[name.partition("/")[0]]
            assert (tenant["weight"], tenant["memory_limit"]) == (shares, shares << 20), victims
        ended = {}   # job: how
        for user in USERS:
            for how, name in zip(ENDS, sorted(each for each in victims if each.startswith(user + "/"))):
                ended[int(name.partition("/job-")[2])] = how
                end(cluster, how, name, victims[name]["pid"])
        assert len(ended) == len(endless), victims
        assert all(code != 0 for code, _ in map(finish, endless)), "a job that was ended has not failed"
        ends = [finish(process) for process in others]
        assert all(code == 0 for code, _ in ends), ends
        check_accounts(cluster, ended)
        cluster.wait_until_clean()


def check_accounts(cluster, ended):
    """Of twenty jobs, of which some were ended."""
    accounts = cluster.accounted(20)
    assert {line["job"] for line in accounts} == set(range(1, 21)), accounts
    assert sorted(line["uid"] for line in accounts) == sorted(10 * list(map(number_of, USERS))), accounts
    assert not any("problem" in line for line in accounts), accounts
    used = {line["job"]: each for line in accounts for each in line["used"]}
    assert sum(len(line["used"]) for line in accounts) == len(used) == 20, accounts
    assert all(f"{pwd.getpwuid(line['uid']).pw_name}/job-{line['job']}" == used[line["job"]]["tenant"]
               for line in accounts), accounts
    assert all(each["sessions"] == each["ended"] == 1 for each in used.values()), used
    assert all(each["gpu_ns"] > 0 for job, each in used.items() if job not in ended), used
    assert len({each["launches"] for job, each in used.items() if job not in ended}) == 1, used
    totals = [json.loads(line) for line in cluster.smt("log", "--totals").splitlines()]
    by_tenant = {each["tenant"]: each for each in totals}
    assert by_tenant == {each["tenant"]: each for each in used.values()}, (totals, used)
    by_server = collections.Counter(each["server"] for each in used.values())
    print(by_server)
    assert len(by_server) == 2, by_server


def weights(root, build):
    """Two users' jobs on one GPU get it as their shares say."""
    with Cluster(root, build, ["gpu=0"], ["simulated"], SMT_POLICY="fair", SMT_COMPILE="ptx=1,wait=10",
                 SMT_SIM="sms=4,tenants=2,grace=2000,step_limit=0,dispatch_clock=1") as cluster:
        started = [cluster.start(f"--gres=smt:{shares}", *program("load", 80, ROOM, 4, 10 ** 9, 100_000),
                                 user=user) for user, shares in zip(USERS, WEIGHTS)]
        ends = [finish(process) for process in started]
        assert all(code == 0 for code, _ in ends), ends
        used = sorted(each["gpu_ns"] for line in cluster.accounted(2) for each in line["used"])
        print(used, used[1] / used[0])
        assert 0.85 < used[1] / used[0] / (WEIGHTS[0] / WEIGHTS[1]) < 1.15, used


def limits(root, build):
    """A job has the priority that it asks for, and no more memory than its shares give."""
    with Cluster(root, build, ["gpu=0", "memory_per_share=32M"], ["simulated"],
                 SMT_SIM="sms=4,grace=1000") as cluster:
        wishes = (USERS[0], 1, "high", 1), (USERS[1], 3, "low", -1)
        for job, (user, shares, priority, number) in enumerate(wishes, 1):
            process = cluster.start(f"--gres=smt:{shares}", f"--smt-priority={priority}", *program("shares"),
                                    user=user)
            name = f"{user}/job-{job}"
            tenant = cluster.wait_until_running(name)[name]
            assert (tenant["priority"], tenant["weight"], tenant["memory_limit"]) == (
                number, shares, shares << 25), tenant
            code, said = finish(process, f"allocate {shares << 24}\nallocate {(shares << 24) + 1}\n")
            first, second = [line for line in said.splitlines() if not line.startswith("srun: ")]
            assert code == 0 and int(first, 16) and second == "CUDA_ERROR_OUT_OF_MEMORY", said
            cluster.accounted(job)
            cluster.wait_until_clean()


def ended(root, build):
    """Jobs that are cancelled and killed leave nothing, and are accounted for."""
    with Cluster(root, build, ["gpu=0"], SMT_SIM="sms=4,grace=1000") as cluster:
        for number, how in enumerate(ENDS, 1):
            name = f"job-{number}"
            process = cluster.start("--gres=smt:10", *program("work", 10 ** 6, 16))
            end(cluster, how, name, cluster.wait_until_running(name)[name]["pid"])
            code, said = finish(process)
            assert code != 0, said
            accounts = cluster.accounted(number)
            assert accounts[-1]["job"] == number and accounts[-1]["uid"] == os.getuid(), accounts
            cluster.wait_until_clean()
        code, said = finish(cluster.start("--gres=smt:10", *program("work", 1, 16)))
        assert code == 0, said


def end(cluster, how, name, process):
    if how == "cancelled":
        cluster.command("scancel", name.rpartition("job-")[2])
    else:
        os.kill(process, signal.SIGKILL)


def daemon_restarts(root, build):
    """slurmd's process ends and another one begins: its jobs go on, and are accounted for."""
    with Cluster(root, build, ["gpu=0"], SMT_SIM="sms=4,grace=1000") as cluster:
        process = cluster.start("--gres=smt:10", *program("shares"))
        cluster.wait_until_running("job-1")
        cluster.kill_node()
        memory = ask(process, "allocate 64")
        cluster.start_node()
        wait_for(lambda: "slurmd started" in cluster.log_of_node(), cluster.logs)
        assert ask(process, f"fill {memory} 7") == "ok" and ask(process, f"read {memory}") == "7"
        code, said = finish(process)
        assert code == 0, said
        (account,) = cluster.accounted(1)
        assert account["job"] == 1 and account["used"][0]["ended"] == 1 and "problem" not in account, account
        cluster.wait_until_clean()


def node_fails(root, build):
    """All processes of a node end at once, those of smt too, and it starts again: no program, grant or
    account waits for what has gone, and the next job runs."""
    with Cluster(root, build, ["gpu=0"], SMT_SIM="sms=4,grace=1000") as cluster:
        process = cluster.start("--gres=smt:10", *program("work", 10 ** 6, 16))
        task = cluster.wait_until_running("job-1")["job-1"]["pid"]
        step = parent_of(task)
        cluster.kill_node()
        for each in step, task, server_of(cluster):
            os.kill(each, signal.SIGKILL)
        cluster.give_up_node()
        code, said = finish(process)
        assert "Node failure" in said, said
        cluster.start_node()
        (account,) = cluster.accounted(1)
        assert account["job"] == 1 and "problem" not in account, account
        (used,) = account["used"]
        assert used["earlier"] and (used["sessions"], used["ended"]) == (1, 0), account
        cluster.wait_until_clean()
        cluster.wait_until_idle()
        code, said = finish(cluster.start("--gres=smt:10", *program("work", 1, 16)))
        assert code == 0, said
        assert cluster.accounted(2)[1]["used"][-1]["ended"] == 1


def parent_of(process):
    return int(pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def server_of(cluster):
    (line,) = cluster.smt("status", "--json").splitlines()
    return json.loads(line)["pid"]


def ask(process, command):
    """Of a job with sim_shares."""
    process.stdin.write(command + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


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
        cluster.wait_until_idle()   # no job has put the node out of service


def main(build, scenario):
    root = slurm_root(build)
    if os.getuid() != 0 or not root:
        print("slurmd has to be root's" if root else "there is no slurmd: Debian's slurmd, slurmctld")
        return SKIPPED
    if not enter_own_network():
        print("no network of its own can be made here")
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
