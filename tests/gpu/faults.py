#!/usr/bin/env python3
"""What happens when something goes wrong: killed clients, a killed server, no server, no memory,
forks, clients of another version, and thousands of starts. One JSON line a test; a table last.

Each test has a runtime directory, and so a server, of its own.
"""
import argparse
import concurrent.futures
import glob
import os
import pathlib
import re
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/harness"))
import harness  # noqa: E402
# noqa: E402
from harness import Child, Lines, Places, Runtime, base_environment, compute_apps, gpu_memory_used, run, tail

# the others need its size, or its driver
WITHOUT_GPU = ("server killed", "other protocol", "cold crowd", "idle server")
places = None
environment = {}


def client(runtime, *arguments, timeout=60, stdin=False, guard=False, preload=True, **variables):
    """Starts build/bin/gpu/static/fault_client under smt."""
    return Child([places.program("fault_client"), *map(str, arguments)],
                 {**environment, **runtime.variables(**variables)},
                 places.preload if preload else None, timeout, stdin, guard)


def wait_until(condition, seconds, step=0.01):
    """Seconds until the condition held, or None."""
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if condition():
            return round(time.monotonic() - start, 3)
        time.sleep(step)
    return None


def server_gpu_memory(runtime):
    apps = compute_apps()
    pids = runtime.server_pids()
    held = [mib for pid, _, mib in apps or [] if pid in pids]
    return held[0] if held else gpu_memory_used()


def failed(why, *children):
    for child in children:
        if child.process.poll() is None:
            child.kill()
    ends = [child.finish() for child in children]
    return {"ok": False, "why": why, "ends": [{k: tail(str(v), 400) for k, v in end.items()} for end in ends]}


def killed_client(mode):
    """SIGKILL in the middle of `mode`: the neighbour stays right, the memory is back in a second."""
    with Runtime(places) as runtime:
        neighbour = client(runtime, "work", 8)
        if not neighbour.wait_ready():
            return failed("the neighbour did not start", neighbour)
        before, gpu_before = runtime.status(), server_gpu_memory(runtime)
        victim = client(runtime, mode, 60)
        if before is None or not victim.wait_ready():
            return failed("no status, or the victim did not start", victim, neighbour)
        during, gpu_during = runtime.status(), server_gpu_memory(runtime)
        victim.kill()

        def freed():
            now = runtime.status()
            return (now is not None and now["sessions"] == before["sessions"] and
                    now["device_bytes"] <= before["device_bytes"])
        seconds = wait_until(freed, 10)
        gpu_after = server_gpu_memory(runtime)
        victim_end, end = victim.finish(), neighbour.finish()
        right = end["rc"] == 0 and "right" in end["out"]
        held = during["device_bytes"] if during else 0
        return {"ok": right and seconds is not None and seconds <= 1.0 and held > before["device_bytes"],
                "why": "" if right else "the neighbour was disturbed: " + tail(end["out"] + end["err"], 300),
                "freed_after_s": seconds,
                "bytes": [before["device_bytes"], held, (runtime.status() or {}).get("device_bytes")],
                "gpu_mib": [gpu_before, gpu_during, gpu_after], "victim_rc": victim_end["rc"],
                "server_log": runtime.log(600)}


def killed_server():
    """SIGKILL of smtd: clients get an error within a second and end by themselves; then a new one serves."""
    with Runtime(places) as runtime:
        busy, idle = client(runtime, "work", 30), client(runtime, "hold", 64, stdin=True)
        launching = client(runtime, "launch", 30)
        clients = (busy, idle, launching)
        if not all(child.wait_ready() for child in clients) or runtime.status() is None:
            return failed("clients did not start", *clients)
        os.kill(runtime.status()["pid"], signal.SIGKILL)
        killed = time.monotonic()
        ended = [wait_until(lambda c=child: c.process.poll() is not None, 10) for child in (busy, launching)]
        idle_alive = idle.process.poll() is None
        idle.close_input()
        idle_after = wait_until(lambda: idle.process.poll() is not None, 10)
        total = round(time.monotonic() - killed, 3)
        ends = [child.finish() for child in clients]
        again = run([places.program("fault_client"), "add"], {**environment, **runtime.variables()},
                    places.preload)
        gave_error = all(end["rc"] == 3 and "error" in end["out"] for end in ends)
        in_time = all(seconds is not None and seconds <= 1.5 for seconds in ended + [idle_after])
        return {"ok": gave_error and in_time and idle_alive and again["rc"] == 0, "ended_after_s": ended,
                "idle_after_s": idle_after,
                "total_s": total, "rcs": [end["rc"] for end in ends],
                "said": [tail(end["out"] + end["err"], 200) for end in ends],
                "new_server": again["rc"], "why": "" if gave_error else "no clean error"}


def no_server():
    """No smtd can be started: one clear line, or the native driver where that is wanted."""
    with Runtime(places) as runtime:
        command = [places.program("fault_client"), "add"]
        missing = {**environment, **runtime.variables(SMT_SERVER="/nonexistent")}
        refused = run(command, missing, places.preload, 40)
        native = run(command, {**missing, "SMT_FALLBACK": "native"}, places.preload, 40)
        lines = [line for line in refused["err"].splitlines() if line.strip()]
        said = [line for line in native["err"].splitlines() if line.strip()]
        clear = refused["rc"] == 3 and len(lines) == 1 and "smt" in lines[0]
        fell_back = native["rc"] == 0 and "right" in native["out"] and len(said) == 1
        return {"ok": clear and fell_back, "message": lines[:4], "program_said": tail(refused["out"], 200),
                "rc": refused["rc"],
                "seconds": refused["seconds"], "fallback_rc": native["rc"], "fallback_message": said[:4],
                "why": ("" if clear else "no clear message; ") +
                ("" if fell_back else "no fallback: " + tail(native["out"], 200))}


def memory_limit():
    """SMT_MEMORY_LIMIT: this tenant gets no more; the others are not touched by it."""
    with Runtime(places) as runtime:
        neighbour = client(runtime, "hold", 3000, stdin=True)
        limited = client(runtime, "fill", 32, stdin=True, SMT_MEMORY_LIMIT="1G")
        started = neighbour.wait_ready() and limited.wait_ready()
        for child in (neighbour, limited):
            child.close_input()
        ends = [neighbour.finish(), limited.finish()]
        got = re.search(r"got (\d+) MiB, free (\d+) and total (\d+)", ends[1]["out"])
        numbers = [int(n) for n in got.groups()] if got else [0, 0, 0]
        right = (started and ends[0]["rc"] == 0 and ends[1]["rc"] == 0 and 900 <= numbers[0] <= 1024 and
                 numbers[2] <= 1024)
        return {"ok": right, "got_free_total_mib": numbers, "rcs": [end["rc"] for end in ends],
                "why": "" if right else tail(ends[1]["out"] + ends[1]["err"], 300)}


def out_of_memory():
    """One tenant takes all there is and meets the end; its neighbour goes on, and it all comes back."""
    with Runtime(places) as runtime:
        neighbour = client(runtime, "work", 15)
        if not neighbour.wait_ready():
            return failed("the neighbour did not start", neighbour)
        before = (runtime.status() or {}).get("device_bytes", 0)
        greedy = client(runtime, "fill", 2048, stdin=True)
        full = greedy.wait_ready(30)
        then = runtime.status() or {"device_bytes": 0, "launches": 0}
        held = then["device_bytes"]
        goes_on = wait_until(lambda: (runtime.status() or then)["launches"] > then["launches"] + 10, 10)
        greedy.close_input()
        greedy_end = greedy.finish()
        back = wait_until(lambda: (runtime.status() or {"device_bytes": 1 << 60})["device_bytes"] <=
                          before, 10)
        again = run([places.program("fault_client"), "fill", "32768"], {**environment, **runtime.variables()},
                    places.preload)
        end = neighbour.finish()
        right = (full and goes_on is not None and greedy_end["rc"] == 0 and end["rc"] == 0 and
                 back is not None and again["rc"] == 0)
        return {"ok": right, "held_gib": held >> 30, "back_after_s": back,
                "greedy": tail(greedy_end["out"], 200),
                "neighbour_rc": end["rc"], "again": tail(again["out"], 200),
                "why": "" if right else tail(greedy_end["err"] + end["out"] + end["err"], 300)}


def forked_child():
    """A child forked after CUDA was initialised is refused, and its parent not disturbed."""
    command = [places.program("fork_child")]
    native = run(command, environment)
    with Runtime(places) as runtime:
        ours = run(command, {**environment, **runtime.variables()}, places.preload)
        left = wait_until(lambda: (runtime.status() or {"sessions": 1})["sessions"] == 0, 3)
        same = ours["rc"] == native["rc"] == 0 and ours["out"] == native["out"]
        return {"ok": same and left is not None, "sessions_gone_after_s": left, "out": tail(ours["out"], 400),
                "why": "" if same else f"native {native['rc']}, smt {ours['rc']}: {tail(ours['err'], 200)}"}


HELLO = struct.Struct("<4IQiiQ2IQ4I64s64s64s")   # runtime/protocol/handshake.h
WELCOME = struct.Struct("<IIIIQQQii256s")
VERSION_MISMATCH, REFUSED = 1, 2


def say(path, packet):
    """What the server answers to a first packet: (status, message, its table's hash), and then hangs up; or
    what went wrong."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(5)
            connection.connect(path)
            connection.send(packet)
            welcome = WELCOME.unpack(connection.recv(4096))
            if connection.recv(4096):
                return "it says more than that it refuses"
            return welcome[1], welcome[9].split(b"\0")[0].decode(errors="replace"), welcome[4]
    except (OSError, struct.error) as error:
        return repr(error)


def other_protocol():
    """Clients that speak another version, or nonsense: refused with a message; the server and
    the programs that it serves go on."""
    with Runtime(places) as runtime:
        # while it is there the server does not make room for another version
        bystander = client(runtime, "hold", 1, stdin=True)
        if not bystander.wait_ready():
            return failed("no server", bystander)
        path, = glob.glob(os.path.join(runtime.directory, "*.sock"))
        before = runtime.status()

        def hello(version, table=0, magic=harness.MAGIC, name=b"old"):
            return HELLO.pack(harness.KIND_HELLO, magic, version, 0, table, os.getpid(),
                              0, 0, 0, 0, 0, 0, 0, 0, 0, name, name, b"")
        first = say(path, hello(999))
        table = first[2] if isinstance(first, tuple) else 0
        packets = {"version 999": (hello(999), VERSION_MISMATCH),
                   "another table": (hello(before["version"], table ^ 1), VERSION_MISMATCH),
                   "a shorter greeting": (hello(before["version"], table)[:48], VERSION_MISMATCH),
                   "names without an end": (hello(999, name=b"x" * 64), VERSION_MISMATCH),
                   "wrong magic": (hello(before["version"], table, magic=0x41414141), REFUSED),
                   "unknown kind": (struct.pack("<II", 77, harness.MAGIC), REFUSED),
                   "one byte": (b"\1", REFUSED),
                   "too long": (b"\1" * 60000, REFUSED)}
        answers = {name: say(path, packet) for name, (packet, _) in packets.items()}
        wrong = [name for name, (_, status) in packets.items() if answers[name][0] != status or
                 len(answers[name][1]) < 10]
        after = run([places.program("fault_client"), "add"], {**environment, **runtime.variables()},
                    places.preload)
        same = (runtime.status() or {}).get("pid") == before["pid"]
        bystander.close_input()
        end = bystander.finish()
        return {"ok": not wrong and same and after["rc"] == 0 and end["rc"] == 0, "answers": answers,
                "same_server": same,
                "rcs": [after["rc"], end["rc"]],
                "why": f"not refused as it should be: {wrong}" if wrong else ""}


def facts_of(runtime):
    """What may leak: of the server, and of the machine."""
    pid = (runtime.status() or {}).get("pid", 0)
    facts = {"pid": pid, "gpu_mib": server_gpu_memory(runtime), "dev_shm": len(os.listdir("/dev/shm"))}
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith(("VmRSS", "RssAnon", "RssShmem", "Threads")):
                    facts[line.split(":")[0]] = int(line.split()[1])
        links = [os.readlink(path) for path in glob.glob(f"/proc/{pid}/fd/*") if os.path.lexists(path)]
        facts["fds"], facts["memfds"] = len(links), sum("memfd:" in link for link in links)
        with open(f"/proc/{pid}/maps") as file:
            facts["maps"] = sum(1 for _ in file)
    except OSError as error:
        facts["problem"] = str(error)
    status = runtime.status() or {}
    facts.update({key: status.get(key)
                  for key in ("sessions", "sessions_served", "device_bytes", "host_bytes")})
    return facts


ALLOWED = {"RssAnon": 48 << 10, "RssShmem": 8 << 10, "Threads": 2, "fds": 2, "memfds": 0,
           "maps": 64, "gpu_mib": 8,
           "device_bytes": 0, "host_bytes": 0, "sessions": 0}


def settled(runtime):
    """facts_of() once no session is left and two looks agree: ends of sessions take a moment."""
    looks = []

    def agree():
        looks.append(facts_of(runtime))
        counts = [[look.get(key) for key in ("sessions", "Threads", "fds", "memfds", "maps")]
                  for look in looks[-2:]]
        return len(looks) > 1 and counts[0] == counts[1] and counts[0][0] == 0
    wait_until(agree, 20, 0.2)
    return looks[-1]


def leaks(before, after):
    grown = {}
    for key, allowed in ALLOWED.items():
        if before.get(key) is None or after.get(key) is None:
            grown[key] = "not known"
        elif after[key] - before[key] > allowed:
            grown[key] = [before[key], after[key]]
    if before["pid"] != after["pid"]:
        grown["pid"] = [before["pid"], after["pid"]]
    return grown


def many_starts(count, at_once, budget):
    """Programs start in a row and at once; nothing may stay behind."""
    command = [places.program("fault_client"), "add"]
    with Runtime(places) as runtime:
        variables = {**environment, **runtime.variables()}
        run(command, variables, places.preload)
        # its most threads, arenas, channels
        crowd = [Child(command, variables, places.preload) for _ in range(at_once)]
        warm = [child.finish()["rc"] for child in crowd]
        before = settled(runtime)
        start, wrong, done = time.monotonic(), [], 0
        while done < count and time.monotonic() - start < budget:
            end = run(command, variables, places.preload, 20)
            done += 1
            if end["rc"] != 0:
                wrong.append([done, end["rc"], tail(end["out"] + end["err"], 200)])
                if len(wrong) >= 5:
                    break
        row_seconds = time.monotonic() - start
        start = time.monotonic()
        children = [Child(command, variables, places.preload) for _ in range(at_once)]
        ends = [child.finish() for child in children]
        crowd_seconds = time.monotonic() - start
        wrong += [["at once", end["rc"], tail(end["out"] + end["err"], 200)]
                  for end in ends if end["rc"] != 0][:5]
        after = settled(runtime)
        grown = leaks(before, after)
        return {"ok": done == count and not wrong and not grown, "starts": done,
                "each_ms": round(row_seconds / max(1, done) * 1000, 1),
                "at_once": at_once, "at_once_s": round(crowd_seconds, 2), "wrong": wrong,
                "grown": grown, "before": before,
                "after": after, "warm_rcs": sorted(set(warm)), "server_log": runtime.log(600),
                "why": f"{done} of {count} starts, {len(wrong)} wrong, grown {grown}" if wrong or
                grown or done < count else ""}


def named_fault(kind):
    """A kernel faults beside three healthy programs: log, status and each program's line name it and its
    tenant."""
    def start(kind, tenant):
        return Child([os.path.join(places.programs, "faulting", "fault"), kind],
                     {**environment, **runtime.variables(SMT_TENANT=tenant)}, places.preload, 60, stdin=True)
    with Runtime(places, SMT_JOURNAL="core_dump") as runtime:
        programs = [start("healthy", f"neighbour{i}") for i in range(3)] + [start(kind, "culprit")]
        if not all(program.wait_ready() for program in programs):
            return failed("programs did not start", *programs)
        programs[-1].close_input()
        ends = [program.finish() for program in programs]
        named = f"in kernel faulty_{kind} of tenant culprit"
        status = run([places.smt, "status"], {**environment, **runtime.variables()})
        said = {"log": named in runtime.log(4000), "status": named in status["out"],
                **{name: named in end["err"]
                   for name, end in zip(("neighbour0", "neighbour1", "neighbour2", "culprit"), ends)}}
        return {"ok": all(said.values()) and all(end["rc"] == 0 for end in ends), "said": said,
                "outputs": [end["out"] for end in ends],
                "why": "" if all(said.values())
                else tail(ends[-1]["err"] + status["out"] + runtime.log(1200), 2000)}


def fault_without_dump(kind):
    """A kernel faults beside a program that has nothing under way, and there is no dump: all the same the
    kernel and its tenant are named, and the other program is told that it was none of its own."""
    def start(kind, tenant):
        return Child([os.path.join(places.programs, "faulting", "fault"), kind],
                     {**environment, **runtime.variables(SMT_TENANT=tenant)}, places.preload, 60, stdin=True)
    with Runtime(places, SMT_JOURNAL="core_dump=0") as runtime:
        idle, culprit = start(kind, "idle"), start(kind, "culprit")
        if not idle.wait_ready() or not culprit.wait_ready():
            return failed("programs did not start", idle, culprit)
        culprit.close_input()
        culprit_end = culprit.finish()
        log = runtime.log(4000)
        idle.close_input()
        idle_end = idle.finish()
        named = f"in kernel faulty_{kind} of tenant culprit"
        said = {"culprit": named in culprit_end["err"], "idle": named in idle_end["err"], "log": named in log,
                "cleared": "It was no kernel of this program" in idle_end["err"],
                "log clears": "It was no kernel of tenant idle" in log}
        return {"ok": all(said.values()), "said": said, "outputs": [idle_end["out"], culprit_end["out"]],
                "why": "" if all(said.values()) else tail(culprit_end["err"] + idle_end["err"] + log, 2000)}


def cold_crowd():
    """Thirty programs start where no server runs: one server comes, and all are served by it."""
    with Runtime(places) as runtime:
        children = [client(runtime, "add", guard=True) for _ in range(30)]
        ends = [child.finish() for child in children]
        wait_until(lambda: len(runtime.server_pids()) == 1, 10)   # those that came too late leave
        servers = runtime.server_pids()
        wrong = [[end["rc"], tail(end["out"] + end["err"], 200)] for end in ends if end["rc"] != 0]
        return {"ok": not wrong and len(servers) == 1, "servers": len(servers), "wrong": wrong[:5],
                "seconds": max(end["seconds"] for end in ends),
                "why": f"{len(wrong)} wrong, {len(servers)} servers" if wrong else ""}


def idle_leave():
    """A server that no program uses leaves, and the next program starts another."""
    with Runtime(places, SMT_IDLE_SECONDS="2") as runtime:
        first = run([places.program("fault_client"), "add"], {**environment, **runtime.variables()},
                    places.preload)
        gone = wait_until(lambda: not runtime.server_pids(), 8, 0.05)
        second = run([places.program("fault_client"), "add"], {**environment, **runtime.variables()},
                     places.preload)
        right = first["rc"] == 0 and gone is not None and second["rc"] == 0
        return {"ok": right, "gone_after_s": gone, "rcs": [first["rc"], second["rc"]],
                "why": "" if right else tail(first["err"] + second["err"])}


def main(arguments=None):
    global places, environment
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(harness.ROOT, "build"))
    parser.add_argument("--preload")
    parser.add_argument("--programs-dir")
    parser.add_argument("--device", default="gpu", choices=["gpu", "sim"],
                        help="sim: those that need no GPU, without one")
    parser.add_argument("--out", help="folder for faults.jsonl")
    parser.add_argument("--select", default="")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--starts", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=100)
    parser.add_argument("--starts-budget", type=float, default=240, help="seconds for the starts in a row")
    options = parser.parse_args(arguments)
    if options.out:
        os.makedirs(options.out, exist_ok=True)
    simulated = options.device == "sim"
    places = Places(options.build, options.preload, options.programs_dir, "shared" if simulated else "static")
    environment = base_environment(with_libraries=not simulated)
    if simulated:
        environment.update(SMT_DEVICE="sim", SMT_REAL_DRIVER="none",
                           LD_LIBRARY_PATH=os.path.join(places.build, "lib", "cudart"))
    lines = Lines(os.path.join(options.out, "faults.jsonl") if options.out else None)

    def starts():
        return many_starts(options.starts, options.at_once, options.starts_budget)
    side_by_side = {"killed in a copy": lambda: killed_client("copy"),
                    "killed in a launch": lambda: killed_client("launch"),
                    "server killed": killed_server, "no server": no_server, "memory limit": memory_limit,
                    "forked child": forked_child, "other protocol": other_protocol, "cold crowd": cold_crowd,
                    "idle server": idle_leave}
    side_by_side |= {f"named fault: {kind}": lambda kind=kind: named_fault(kind)
                     for kind in ("store", "load", "misaligned", "trap")}
    side_by_side |= {f"fault without dump: {kind}": lambda kind=kind: fault_without_dump(kind)
                     for kind in ("store", "trap")}
    # take all memory, measure the whole GPU's
    by_itself = {"out of memory": out_of_memory, "many starts": starts}
    if simulated:
        side_by_side = {name: side_by_side[name] for name in WITHOUT_GPU}
        by_itself = {}

    def perform(name, test):
        if not re.search(options.select, name):
            return
        start = time.monotonic()
        try:
            result = test()
        except Exception as error:
            result = {"ok": False, "why": repr(error)}
        lines.add(test=name, took_s=round(time.monotonic() - start, 2), **result)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda item: perform(*item), side_by_side.items()))
    for name, test in by_itself.items():
        perform(name, test)
    for line in lines.all:
        notes = {key: value for key, value in line.items()
                 if key not in ("test", "ok", "why", "took_s", "server_log", "before", "after", "ends")}
        print(f"{'ok    ' if line['ok'] else 'NOT OK'} {line['test']:<20} {line['took_s']:>6} "
              f"s  {line.get('why', '')[:200]}  {str(notes)[:400]}")
    right = sum(1 for line in lines.all if line["ok"])
    print(f"{right} of {len(lines.all)} right")
    return right == len(lines.all)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
