#!/usr/bin/env python3
"""One server for several Unix users: what each sees, may do and is granted, and what a hostile one tries.

    users.py SMT FOLDER_OF_PROGRAMS SCENARIO
"""

import os
import socket
import struct
import subprocess
import sys

from machine_of_users import (ALICE, BOB, BYTES, KEY, SERVER, STRANGER, Machine, Skipped, check_others, name,
                              run_scenario)
from place import PATIENCE, wait_for

REFUSED = "CUDA_ERROR_INVALID_VALUE"
NO_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"


def two_users(smt, programs):
    """Both compute right, with tenants of one name that have nothing in common."""
    with Machine(smt, programs) as machine:
        alice, bob = machine.party(ALICE), machine.party(BOB)
        of_alice, of_bob = (each.ask("allocate", BYTES) for each in (alice, bob))
        for each, memory, value in (alice, of_alice, 17), (bob, of_bob, 29):
            each.ask("fill", memory, value)
        assert (alice.ask("read", of_alice), bob.ask("read", of_bob)) == ("17", "29")

        handle = alice.ask("share", of_alice)
        assert bob.ask("open", handle) == REFUSED, "bob has alice's memory"
        friend = machine.party(ALICE)
        assert friend.ask("read", friend.ask("open", handle)) == "17", "alice's programs share memory"
        friend.end()

        assert set(machine.status(0)[0]) == {name(ALICE), name(BOB)}
        for user, other in (ALICE, BOB), (BOB, ALICE):
            mine, server = machine.status(user)
            assert set(mine) == {name(user)}, mine
            assert server["other_users_sessions"] == 1 and server["other_users_bytes"] >= BYTES, server
            text = machine.command(user, "status")
            assert str(other) not in text and "other users: 1 sessions" in text, text
        pids = {pid for pid, in zip(tenant["pid"] for tenant in machine.status(0)[0].values())}
        assert pids == {alice.process.pid, bob.process.pid}, "the kernel says which process it is"

        alice.ask("free", of_alice)   # what was alice's is zeroed
        assert bob.ask("read", bob.ask("allocate", BYTES)) == "0"
        alice.end()
        bob.end()


def memory_of_another(smt, programs):
    """Nothing that a user can name or open has another user's memory: its addresses, files of the server and
    of the other's programs, and what /proc has of their processes; also while it is in the server's file."""
    with Machine(smt, programs, SMT_LIMITS="swap_host=0,swap_folder={root}/cache") as machine:
        alice, bob = machine.party(ALICE), machine.party(BOB)
        memory, own = (each.ask("allocate", BYTES) for each in (alice, bob))
        alice.ask("fill", memory, 17)
        for words in (("read", memory), ("types", memory), ("share", memory), ("free", memory),
                      ("close", memory), ("release", memory), ("map", memory)):
            said = bob.ask(*words)
            assert said in (REFUSED, "CUDA_ERROR_INVALID_HANDLE"), (words, said)
        assert alice.ask("read", memory) == "17" and bob.ask("read", own) == "0"
        look_around(machine)
        machine.command(ALICE, "suspend", "train")
        wait_for(lambda: machine.status(0)[0][name(ALICE)]["file_bytes"] >= BYTES, machine.log)
        look_around(machine)
        machine.command(ALICE, "resume", "train")
        assert alice.ask("read", memory) == "17"
        alice.end()
        bob.end()


def look_around(machine):
    """As BOB, at what is the server's and ALICE's."""
    whose = f"( -uid {SERVER} -o -uid {ALICE} )"
    places = [place for place in ("/tmp", "/var/tmp", "/dev/shm", "/run", machine.root)
              if os.path.isdir(place)]
    files = machine.looks("find", *map(str, places), *whose.split(), "-type", "f", "-readable")
    assert not files.stdout, files
    processes = machine.processes_of(SERVER, ALICE)
    assert len(processes) >= 2, processes
    for process in processes:
        for secret in "mem", "maps", "environ", "auxv", "fd", "map_files":
            path = f"/proc/{process}/{secret}"
            seen = machine.looks(*(("ls", path) if secret in ("fd", "map_files") else ("head", "-c1", path)))
            assert seen.returncode != 0, (path, seen)
            ended = not os.path.exists(f"/proc/{process}")
            assert ended or "ermission denied" in seen.stderr, (path, seen)


def ask_settings(machine, user):
    """The reply to a SettingsRequest (handshake.h) of a policy that is not the server's."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    groups = os.getgroups()
    os.setgroups([SERVER])
    os.seteuid(user)
    try:
        end.connect(str(machine.folder / f"{KEY}.sock"))
    finally:
        os.seteuid(0)
        os.setgroups(groups)
    with end:
        end.send(struct.pack("=II64s4096s", 14, 0x31544d53, b"raw", b"policy=none\n"))
        kind, _, differences = struct.unpack("=II4096s", end.recv(8192))
    assert kind == 15, kind
    return differences.rstrip(b"\0").decode()


def own_log(smt, programs):
    """Log, journal and settings' values are the administrator's to read."""
    with Machine(smt, programs) as machine:
        alice = machine.party(ALICE)
        alice.ask("allocate", BYTES)
        assert ask_settings(machine, 0).startswith("SMT_POLICY is none here"), machine.log()
        assert ask_settings(machine, ALICE) == ""
        assert "root/raw starts" in machine.log() and name(ALICE, "raw") not in machine.log()
        said = machine.command(ALICE, "log", code=1)
        assert f"the journal of the system's server {KEY} is for its administrator" in said, said
        for file in machine.folder.iterdir():
            readable = subprocess.run(["cat", file], capture_output=True, **machine.as_user(ALICE))
            assert readable.returncode != 0, f"{file} can be read: {readable.stdout[:80]}"
        assert name(ALICE) in machine.command(0, "log")
        alice.end()


GRANTS = f"""
strict_tenants = "{ALICE}/apart"
[everyone]
memory = "64M"
sessions = 2
[groups.{BOB}]
priority = "high"
sessions = 1
[users.{BOB}]
weight = 2
"""


def granted(smt, programs):
    """Priority, weight, memory and programs are at most what the administrator grants."""
    with Machine(smt, programs, GRANTS) as machine:
        wishes = ("--priority", "5", "--weight", "4")
        alice, bob = machine.party(ALICE, options=wishes), machine.party(BOB, options=wishes)
        alice.ask("allocate", 32 << 20)
        bob.ask("allocate", BYTES)
        tenants, _ = machine.status(0)
        terms = {user: (tenants[name(user)]["priority"], tenants[name(user)]["weight"])
                 for user in (ALICE, BOB)}
        assert terms == {ALICE: (0, 1), BOB: (1, 2)}, terms
        assert tenants[name(ALICE)]["limited"] == ["priority", "weight"]
        assert "asked for more than its user is granted: priority, weight" in machine.command(ALICE, "status")
        assert f"{name(ALICE)} (pid {alice.process.pid}): its user is granted less" in machine.log()

        said = machine.command(ALICE, "set", "train", "--priority", "high", code=1)
        assert "the highest priority that the administrator grants this user is 0" in said, said
        said = machine.command(ALICE, "set", "train", "--memory", "128M", code=1)
        assert "grants this user 64 MiB" in said, said
        machine.command(ALICE, "set", "train", "--priority", "low")
        assert machine.status(0)[0][name(ALICE)]["priority"] == -1

        assert "names tenant apart, which may not share" in machine.party(ALICE, "apart").last_words()

        other = machine.party(ALICE, "other")   # of all tenants of alice's together
        assert other.ask("allocate", 48 << 20) == NO_MEMORY
        other.ask("allocate", 16 << 20)
        assert "grants this user 2 programs at once" in machine.party(ALICE, "third").last_words()
        other.end()
        alice.end()

        target = machine.party(ALICE, options=("--p99", "8ms"))
        target.ask("allocate", BYTES)
        tenant = machine.status(0)[0][name(ALICE)]
        assert (tenant["priority"], tenant["target"], tenant["limited"]) == (0, None, ["target"]), tenant
        target.end()
        bob.end()


def administered(smt, programs):
    """Only an administrator's commands reach what is another user's, or all's."""
    with Machine(smt, programs, f"[groups.{BOB}]\nadministers = true\n") as machine:
        alice, bob = machine.party(ALICE), machine.party(BOB)
        memory = alice.ask("allocate", BYTES)
        bob.ask("allocate", BYTES)
        # The stranger, in the group.
        carol = {**machine.as_user(STRANGER, SMT_SYSTEM="1"), "extra_groups": [SERVER]}
        for words in (("suspend", name(ALICE)), ("resume", name(ALICE)),
                      ("set", name(ALICE), "--priority", "low"), ("set", name(ALICE), "--memory", "1M"),
                      ("policy", "set", "fifo"), ("server", "stop")):
            done = subprocess.run([machine.smt, *words], capture_output=True, timeout=PATIENCE, **carol)
            assert done.returncode in (1, 2), done
            assert "no program of tenant" in done.stderr or "only an administrator" in done.stderr, done
        assert set(machine.status(BOB)[0]) == {name(ALICE), name(BOB)}, "bob administers"
        machine.command(BOB, "suspend", name(ALICE))
        assert machine.status(ALICE)[0][name(ALICE)]["suspended"]
        machine.command(ALICE, "resume", "train")
        machine.command(BOB, "suspend", "train")   # a name without a user is its own tenant's
        tenants, _ = machine.status(0)
        assert {each: tenants[each]["suspended"] for each in tenants} == {name(ALICE): False, name(BOB): True}
        machine.command(BOB, "resume", "train")
        lone = machine.party(ALICE, "lone")
        lone.ask("allocate", BYTES)
        said = machine.command(BOB, "suspend", "lone", code=1)
        assert f"no program of tenant lone runs; smt status shows {name(ALICE, 'lone')}" in said, said
        lone.end()
        machine.command(BOB, "set", name(ALICE), "--priority", "3")
        assert machine.status(ALICE)[0][name(ALICE)]["priority"] == 3
        machine.command(BOB, "policy", "set", "fifo")
        assert alice.ask("fill", memory, 3) and alice.ask("read", memory) == "3"
        alice.end()
        bob.end()
        assert "stopped" in machine.command(BOB, "server", "stop", SMT_SYSTEM="1")


def which_server(smt, programs):
    """A stranger is told why; a user's own server comes first, as long as it runs."""
    with Machine(smt, programs) as machine:
        said = machine.party(STRANGER).last_words()
        assert "is not in the group that may use the system's server" in said, said
        own = machine.party(STRANGER, SMT_SYSTEM="0")
        own.ask("allocate", BYTES)
        assert machine.status(0)[1]["tenants"] == []
        own.end()
        machine.command(STRANGER, "server", "stop")

        assert "not the system's server" in machine.command(ALICE, "server", "start")
        first = machine.party(ALICE)
        first.ask("allocate", BYTES)
        assert machine.status(0)[1]["tenants"] == []
        always = machine.party(ALICE, SMT_SYSTEM="1")
        always.ask("allocate", BYTES)
        assert set(machine.status(0)[0]) == {name(ALICE)}
        first.end()
        always.end()
        assert "server simulated stopped" in machine.command(ALICE, "server", "stop")
        then = machine.party(ALICE)
        then.ask("allocate", BYTES)
        assert set(machine.status(0)[0]) == {name(ALICE)}
        then.end()


def false_server(smt, programs):
    """A folder that another user made, and a socket of another user's in one of root's, are not used."""
    with Machine(smt, programs) as machine:
        common = machine.root / "common"
        common.mkdir()
        common.chmod(0o1777)
        made = common / "smt"
        made.mkdir()
        os.chown(made, BOB, SERVER)
        made.chmod(0o750)
        said = machine.party(ALICE, SMT_SYSTEM_DIR=str(made)).last_words()
        assert "it is not root's, and others than root could have made it" in said, said
        made.chmod(0o777)
        said = machine.party(ALICE, SMT_SYSTEM_DIR=str(made)).last_words()
        assert "others than its owner write it" in said, said

        os.chown(machine.folder, STRANGER, SERVER)   # the server's user is no longer the folder's
        said = machine.party(ALICE).last_words()
        assert "neither root's nor of the folder's owner" in said, said


def fault_of_another(smt, programs):
    """A fault ends all, on a device as a GPU is; whose it was, the administrator is told, and no user."""
    with Machine(smt, programs, one_context=1) as machine:
        bob = machine.party(BOB)
        memory = bob.ask("allocate", BYTES)
        culprit = subprocess.run([machine.smt, "run", "--tenant", "culprit", "--",
                                  machine.programs / "sim_misbehave", "wild"], capture_output=True,
                                 timeout=PATIENCE, **machine.as_user(ALICE))
        assert "tenant culprit" in culprit.stderr.replace(f"{ALICE}/", ""), "alice is told of her own"
        said, _ = bob.process.communicate(f"read {memory}\n", timeout=PATIENCE)
        assert "may have been another user's" in said, said
        assert str(ALICE) not in said and "culprit" not in said and "wild" not in said, said
        assert machine.server.wait(timeout=PATIENCE) == 0 and name(ALICE, "culprit") in machine.log()
        path = machine.folder / f"{KEY}.sock"
        assert path.exists(), "programs would start servers of their own"
        waiting = machine.party(ALICE)   # for the next server
        waiting.process.stdin.write("allocate 64\n")
        waiting.process.stdin.flush()
        machine.start_server()
        waiting.ask("allocate", BYTES)
        assert set(machine.status(0)[0]) == {name(ALICE)}
        waiting.end()


def in_a_container(smt, programs):
    """A program with process numbers of its own, and the server's folder at another place: the server knows
    user and process by the kernel."""
    new_namespaces = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*new_namespaces, "true"], capture_output=True).returncode != 0:
        raise Skipped("namespaces cannot be made here")
    with Machine(smt, programs) as machine:
        mounted = machine.root / "mounted"
        mounted.mkdir()
        script = (f"mount --bind {machine.folder} {mounted} && exec setpriv --reuid {ALICE} --regid {ALICE} "
                  f"--groups {SERVER} {machine.smt} run --tenant train -- {machine.programs / 'sim_shares'}")
        inside = machine.party(0, command=[*new_namespaces, "sh", "-c", script], SMT_SYSTEM_DIR=str(mounted))
        memory = inside.ask("allocate", BYTES)
        tenant = machine.status(ALICE)[0][name(ALICE)]
        namespaces = [os.readlink(f"/proc/{pid}/ns/pid") for pid in (tenant["pid"], "self")]
        assert namespaces[0] != namespaces[1], (tenant, namespaces)
        outside = machine.party(ALICE)
        handle = inside.ask("share", memory)
        inside.ask("fill", memory, 5)
        assert outside.ask("read", outside.ask("open", handle)) == "5"
        outside.end()
        inside.end()


def hostile_user(smt, programs):
    """A user in the group sends hundreds of wrong messages of each kind, orders to stop, and orders about the
    other's tenant: the other's program computes right meanwhile, and has what it had."""
    with Machine(smt, programs) as machine:
        bob = machine.party(BOB)
        memory = bob.ask("allocate", BYTES)
        before, server = machine.status(0)
        path = machine.folder / f"{KEY}.sock"
        hostile = subprocess.Popen([machine.programs / "preload_hostile", path, "300", "2", "orders",
                                    name(BOB)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   **machine.as_user(ALICE))
        value = 0
        while hostile.poll() is None:
            value += 1
            assert bob.ask("fill", memory, value) == "ok" and bob.ask("read", memory) == str(value)
        said = hostile.stdout.read()
        assert hostile.returncode == 0 and int(said.split()[0]) > 30_000 and value > 10, (said, value)
        assert machine.server.poll() is None, machine.log()
        assert f"refused {ALICE}/a program: this is the system's server" in machine.log()
        after, still = machine.status(0)
        assert still["pid"] == server["pid"] and still["policy"] == server["policy"], still
        for fact in "priority", "weight", "memory_limit", "suspended", "device_bytes":
            assert after[name(BOB)][fact] == before[name(BOB)][fact], (fact, after)
        bob.end()


def mistaken_file(smt, programs):
    """A server whose administrator's file has a mistake does not start: it could grant too much."""
    machine = Machine(smt, programs, "[everyone]\nmemroy = \"1M\"\n[users.x]\nadministers = 1\n")
    with machine:
        assert machine.server.wait(timeout=PATIENCE) == 1
        said = machine.log()
        assert "smt.toml:2: memroy in everyone is nothing to grant" in said and "memory" in said, said
        assert "administers in users.x is '1'; it takes true or false" in said, said
        (machine.root / "smt.toml").write_text("")
        machine.start_server()


if __name__ == "__main__":
    sys.exit(run_scenario(globals(), check_others))
