#!/usr/bin/env python3
"""What happens between several programs, the server and the faults of either, on the fake driver.

    scenarios.py SMT FAKE_DRIVER SCENARIO

Each function below named after a scenario is one test, in a runtime folder of its own. Nothing here
measures time: a test waits for a fact, and fails when it has not become one after PATIENCE seconds.
"""

import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from run import PATIENCE, smt, wait_until_empty

MAGIC = 0x31544D53
HELLO, WELCOME, MAPPED, CAPTURED, SETTINGS, OPENED = 1, 2, 3, 9, 14, 23
OK, VERSION_MISMATCH, REFUSED = 0, 1, 2
WELCOME_FORMAT = "<4I3Q2i256s"
OUT_OF_MEMORY, UNAVAILABLE, NOT_READY, ILLEGAL_ADDRESS = 2, 46, 802, 700


class Place:
    """A runtime folder with its server, and the programs started in it."""

    def __init__(self, program, driver, folder):
        self.program, self.driver, self.folder = program, driver, pathlib.Path(folder)
        self.bin = pathlib.Path(program).parent
        self.started = []
        os.environ.update(SMT_RUNTIME_DIR=str(folder), SMT_DRIVER=driver, SMT_REAL_DRIVER="none",
                          SMT_FAKE_GATES=str(folder), SMT_FAKE_RECORD=str(self.folder / "calls"))

    def start(self, name, *arguments, tenant=None, options=(), how={}, **environment):
        command = [self.program, "run", *(["--tenant", tenant] if tenant else []), *options, "--",
                   str(self.bin / f"preload_{name}"), *map(str, arguments)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE,
                                   text=True, env=os.environ | environment, **how)
        self.started.append(process)
        return process

    def run(self, name, *arguments, **how):
        return finish(self.start(name, *arguments, **how))

    def status(self):
        return smt(self.program, "server", "status")

    def server_now(self):
        """None: there is none, or it does not answer, as while another process takes over."""
        found = re.search(r"process +(\d+)", self.status())
        return int(found[1]) if found else None

    def server_pid(self):
        found = self.server_now()
        assert found, "there is no server"
        return found

    def socket(self):
        return str(self.folder / "device.sock")

    def calls(self, name):
        record = self.folder / "calls"
        return record.read_text().count(name) if record.exists() else 0

    def wait_reached(self, gate):
        wait_for(lambda: (self.folder / f"{gate}.reached").exists(), f"a kernel stands at gate {gate}")

    def open(self, gate):
        (self.folder / f"{gate}.open").touch()

    def clean_up(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.open(1)
        subprocess.run([self.program, "server", "stop"], timeout=PATIENCE)


def wait_for(fact, text):
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < deadline, f"did not become true: {text}"
        time.sleep(0.01)


def finish(process, code=0):
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, f"{process.args} left with {process.returncode}\n{output}\n{errors}"
    return output, errors


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # A zombie whose parent does not ask: containers without an init.
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def threads(place):
    assert "in order" in place.run("threads")[0]


def answers(place):
    """What depends on its arguments and the session's code alone goes to the server once."""
    maps, threads = 400, 4
    assert "asked" in place.run("answers")[0]
    lines = (place.folder / "calls").read_text().splitlines()
    encoded = [line for line in lines if line.startswith("cuTensorMapEncodeTiled")]
    assert encoded.count("cuTensorMapEncodeTiled rank=6") == 2, "a failure is not remembered"
    # threads that ask for the same at the same time, or meet in the memory, may each ask the server
    assert 2 * maps <= len(encoded) - 2 <= maps + threads * maps + maps, len(encoded)
    clusters = [line.split()[1] for line in lines if line.startswith("cuOccupancyMaxActiveClusters")]
    assert clusters == ["attributes=2", "attributes=1", "attributes=2", "attributes=2"], clusters


def large_copies(place):
    assert "all there" in place.run("large_copies")[0]
    wait_until_empty(place.program)


def fork(place):
    place.run("fork")
    wait_until_empty(place.program)


def fresh_memory(place):
    """Twice: the second tenant gets what the first one had."""
    place.run("fresh", tenant="first")
    wait_until_empty(place.program)
    place.run("fresh", tenant="second")


def fresh_arrays(place):
    """Twice, as memory."""
    place.run("fresh_arrays", tenant="first")
    wait_until_empty(place.program)
    place.run("fresh_arrays", tenant="second")


def waiting_neighbour(place):
    """A call that waits for the whole context is not made while a stream waits for its client."""
    waiting = place.start("waits", tenant="neighbour")
    assert waiting.stdout.readline() == "waiting\n"
    before = place.calls("cuMemHostUnregister")
    place.run("fresh")
    # All that the program had is freed but its pinned memory.
    wait_for(lambda: re.search(r"sessions +1 open", place.status()), "one session is left")
    assert place.calls("cuMemHostUnregister") == before, "the whole context was waited for"
    loading = place.start("scale")   # to load a module is such a call
    finish(waiting)
    finish(loading)
    wait_until_empty(place.program)
    wait_for(lambda: place.calls("cuMemHostUnregister") > before, "the pinned memory is freed")


def kill(place, how, in_the_middle):
    held = place.start("held", how, tenant="killed")
    place.wait_reached(1)
    wait_for(in_the_middle, "the program is in the middle of it")
    held.kill()
    finish(held, -signal.SIGKILL)
    place.run("scale", tenant="neighbour")
    place.run("fresh", tenant="neighbour")
    # Its kernel still runs, so its memory cannot be free; the neighbours' is.
    wait_for(lambda: re.search(r"sessions +1 open", place.status()), "one session is left")
    assert re.search(r"memory +32\.0 MiB device, 32\.0 MiB host", place.status()), place.status()
    place.open(1)
    wait_until_empty(place.program)
    place.run("scale", tenant="neighbour")


def kill_in_launch(place):
    kill(place, "launch", lambda: place.calls("cuStreamSynchronize") > 0)


def kill_in_copy(place):
    kill(place, "copy", lambda: place.calls("cuMemcpyHtoDAsync_v2") > 0)


def kill_server(place):
    held = [place.start("held", "launch"), place.start("held", "copy")]
    place.wait_reached(1)
    for process in held:   # one that has not launched yet fails another call
        assert process.stdout.readline() == "launched\n"
    wait_for(lambda: place.calls("cuStreamSynchronize") and place.calls("cuMemcpyHtoDAsync_v2"), "both wait")
    os.kill(place.server_pid(), signal.SIGKILL)
    for process in held:
        assert f"error {UNAVAILABLE}\n" in finish(process)[0]
    place.run("scale")   # its socket and its lock file are still there


def no_server(place):
    output, errors = place.run("begin", SMT_SERVER="/nowhere/smtd")
    assert output == f"cuInit {NOT_READY}\n", output
    assert "/nowhere/smtd" in errors and "SMT_FALLBACK" in errors and errors.count("\n") == 1, errors
    errors = place.run("begin", SMT_SERVER="/nowhere/smtd", SMT_FALLBACK="native")[1]
    assert "no driver here" in errors and errors.count("\n") == 1, errors
    # A server's program that fails at once is no reason to wait.
    output, errors = place.run("begin", SMT_SERVER="/bin/false")
    assert output == f"cuInit {NOT_READY}\n" and "did not start" in errors, output + errors


def no_device(place):
    output, errors = place.run("begin", SMT_DRIVER="/nowhere/libcuda.so.1")
    assert output == f"cuInit {NOT_READY}\n" and "/nowhere/libcuda.so.1" in errors, output + errors


def gpu_without_memory(place):
    """The simulated device does not stand in for a GPU that is there."""
    (place.folder / "libcuda.so.1").symlink_to(place.driver)
    output, errors = place.run("begin", SMT_DRIVER="", LD_LIBRARY_PATH=str(place.folder),
                               SMT_FAKE_FAIL=f"cuDevicePrimaryCtxRetain:0:{OUT_OF_MEMORY}")
    assert output == f"cuInit {NOT_READY}\n" and "cuDevicePrimaryCtxRetain failed" in errors, output + errors


def native(place):
    """Without a server, and with one: a driver in the client gives the server its name."""
    fallback = dict(SMT_SERVER="/nowhere/smtd", SMT_FALLBACK="native", SMT_REAL_DRIVER=place.driver)
    errors = place.run("scale", **fallback)[1]
    assert "on the GPU directly" in errors, errors
    place.run("threads", **fallback)
    assert "no server is running" in place.status()
    assert place.run("scale", SMT_REAL_DRIVER=place.driver)[1] == ""
    assert len(list(place.folder.glob("*.sock"))) == 1 and not pathlib.Path(place.socket()).exists()


def connect(place, packet):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(PATIENCE)
    client.connect(place.socket())
    client.send(packet)
    return client


def hello(version, table_hash=0, tenant=b"other"):
    return struct.pack("<4IQiiQ2IQ6I64s64s64s", HELLO, MAGIC, version, 0, table_hash, os.getpid(),
                       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, tenant, tenant, b"")


def machine_code(place):
    """PTX and the linker's inputs are the compile worker's: this driver takes cubins alone."""
    process = place.start("machine_code", SMT_COMPILE="ptx=0", SMT_CACHE_DIR=str(place.folder / "cache"))
    assert finish(process)[0].strip() == "right"


def assembled(place):
    """Managed PTX stands in for an image once its machine code is made, which no load waits for: by the next
    load, and with another option by the one behind that."""
    environment = dict(SMT_CACHE_DIR=str(place.folder / "cache"))

    def load(made, *options):
        """What the journal says of the load, once it says so often that machine code is made."""
        before = len(notes())
        process = place.start("assembled", *options, **environment)
        assert process.stdout.readline() == "loaded\n"
        wait_for(lambda: sum("bytes of machine code" in note for note in notes()) == made, f"{made} made")
        finish(process)
        return " ".join(note for note in notes()[before:] if "an image is loaded" in note)

    def notes():
        log = smt(place.program, "log", "--json").splitlines() if place.server_now() else []
        return [entry["text"] for entry in map(json.loads, log) if entry["kind"] == "note"]

    not_made = "as the program made it: its managed form is not made yet"
    managed = "in managed form, managed by PTX (1 kernels)"
    loads = [(not_made, load(2)), (managed, load(2)), (not_made, load(4, 40)), (managed, load(4, 40))]
    assert all(expected in said for expected, said in loads), loads


def bystander(place):
    """A program that is there all the time: the server has no reason to leave."""
    return bystander_with(place)


def bystander_with(place, **environment):
    held = place.start("held", "launch", tenant="bystander", **environment)
    place.wait_reached(1)
    return held


def memory_limit(place):
    programs = {16: place.start("allocate"), 4: place.start("allocate", options=("--memory", "64M"))}
    for pieces, process in programs.items():
        output = finish(process)[0]
        assert output == f"{pieces} pieces\n", output
    wait_until_empty(place.program)


def addresses(place):
    """Memory of another tenant, and of the server itself: its heap, where the fake driver could write."""
    holder = place.start("hold_memory", tenant="holder")
    held = holder.stdout.readline().strip()
    heap = next(line.split("-")[0]
                for line in pathlib.Path(f"/proc/{place.server_pid()}/maps").read_text().splitlines()
                if line.endswith("[heap]"))
    assert place.run("addresses", held, heap, tenant="other")[0] == "refused\n"
    output = holder.communicate("\n", timeout=PATIENCE)[0]
    assert holder.returncode == 0 and output == "unchanged\n", output
    wait_until_empty(place.program)


def charges(place):
    """All memory counts against a limit, however it is had; host memory shows in the status beside it."""
    os.environ["SMT_LIMITS"] = "host_memory=64M"
    holder = place.start("hold_memory", tenant="holder")
    assert holder.stdout.readline()
    row = next(line for line in smt(place.program, "status").splitlines() if "holder" in line)
    assert row.split().count("8.0") == 1, row   # MiB of pinned memory
    assert place.run("charges", options=("--memory", "64M"))[0] == "all counted\n"
    holder.communicate("\n", timeout=PATIENCE)
    wait_until_empty(place.program)


def small_device(place):
    """What the device does not have, no program gets; what one gives back the next can have."""
    for _ in range(2):
        output = place.run("allocate", SMT_FAKE_MEMORY=str(160 << 20))[0]
        assert 4 <= int(output.split()[0]) <= 10, output


def device_printf(place):
    programs = [(place.start("say", number, 20, tenant=f"tenant{number}"), number) for number in (1, 22, 333)]
    for process, number in programs:
        output = finish(process)[0]
        assert output == f"device says {number}\n" * 20, f"{number}:\n{output}"


def refused_calls(place):
    """Named on stderr, once each and only where that is wanted; counted in the journal."""
    lines = ["smt: cuMulticastGetGranularity is not supported\n", "smt: cuMemCreate is not supported\n"]
    for wanted in ("0", "1"):
        process = place.start("refused", tenant=f"wanted{wanted}", SMT_REPORT_UNSUPPORTED=wanted)
        assert finish(process)[1] == "".join(lines) * int(wanted)
    wait_until_empty(place.program)
    log = [json.loads(line) for line in smt(place.program, "log", "--json").splitlines()]
    counts = [(entry["tenant"], entry["name"], entry["value"]) for entry in log
              if entry["kind"] == "unsupported"]
    each = [("cuMemCreate", 1), ("cuMulticastGetGranularity", 1), ("cuMulticastGetGranularity", 2)]
    assert sorted(counts) == [(f"wanted{i}", *one) for i in "01" for one in each], counts


def status_names(place, text):
    wait_for(lambda: re.search(text, smt(place.program, "status")), f"smt status says {text}")


def private_tables(place):
    """The driver's own functions behind them need a context of the process."""
    assert place.run("tables", SMT_REAL_DRIVER=place.driver)[1] == ""
    said = place.run("tables", "11", SMT_REAL_DRIVER=place.driver)[1]
    assert said.count("smt: the CUDA runtime in this program is of CUDA 11") == 1, said


def fatal_fault(place):
    sufferers = [place.start("fault", "suffer") for _ in range(2)]
    for process in sufferers:
        assert process.stdout.readline() == "ready\n"
    pid = place.server_pid()
    output, said = place.run("fault", "cause", tenant="careless")
    assert output == f"error {ILLEGAL_ADDRESS}\n", output
    said_of_it = "smt: this program's GPU context is lost: CUDA_ERROR_ILLEGAL_ADDRESS (700)"
    assert said_of_it in said and "in kernel fault of tenant careless" in said, said
    assert "It was no kernel" not in said, said
    for process in sufferers:
        assert process.stdout.readline() == f"error {ILLEGAL_ADDRESS}\n"
    place.run("scale")   # although the sufferers are still there
    assert place.server_pid() != pid
    for process in sufferers:
        errors = finish(process)[1]
        assert "tenant careless" in errors and "It was no kernel of this program" in errors, errors
    # The next server has core dumps on, which name the kernel.
    sufferer = place.start("fault", "suffer")
    assert sufferer.stdout.readline() == "ready\n"
    named = "in kernel fault of tenant again"
    assert named in place.run("fault", "cause", tenant="again")[1]
    assert named in finish(sufferer)[1]
    assert named in smt(place.program, "status") and named in smt(place.program, "log")


def fault_taken_over(place):
    """The same with a standby: a program with nothing under way asks all the time, and goes on."""
    os.environ["SMT_KEEPER"] = "takeover"
    sufferer = place.start("fault", "suffer", tenant="sufferer")
    assert sufferer.stdout.readline() == "ready\n"
    for tenant in ("careless", "again"):
        pid = place.server_pid()
        wait_for(lambda: "is ready to take over" in smt(place.program, "log"), "there is a standby")
        assert f"in kernel fault of tenant {tenant}" in place.run("fault", "cause", tenant=tenant)[1]
        wait_for(lambda: place.server_now() not in (None, pid), "another process serves")
        place.run("scale")
        assert "sufferer" in smt(place.program, "status"), smt(place.program, "status")
    assert sufferer.poll() is None, sufferer.communicate()
    sufferer.kill()
    finish(sufferer, -9)


def idle_exit(place):
    os.environ["SMT_IDLE_SECONDS"] = "1"
    place.run("scale")
    pid = place.server_pid()
    wait_for(lambda: gone(pid), "the idle server left")
    assert "no server is running" in place.status() and not pathlib.Path(place.socket()).exists()
    place.run("scale")


def hundred_starts(place):
    """Of which the first ones find no server: one is started. All that they held is given back."""
    starts = int(os.environ.get("SMT_TEST_STARTS", 100))   # fewer where each takes a second
    for process in [place.start("scale", tenant=f"tenant{i}") for i in range(starts)]:
        finish(process)
    wait_until_empty(place.program)
    assert re.search(rf"{starts} served", place.status()), place.status()
    assert re.search(rf"launches +{14 * starts}\n", place.status()), place.status()
    server = pathlib.Path(f"/proc/{place.server_pid()}")

    def held():
        wait_until_empty(place.program)
        return len(list((server / "fd").iterdir())), len(list((server / "task").iterdir()))

    place.run("scale")
    wait_for(lambda: held() == (len(list((server / "fd").iterdir())),
                                len(list((server / "task").iterdir()))), "it rests")
    fds, tasks = held()
    assert fds < 20 and tasks < 10, f"the server holds {fds} descriptors and {tasks} threads"


SCENARIOS = [threads, answers, large_copies, fork, fresh_memory, fresh_arrays, waiting_neighbour,
             kill_in_launch, kill_in_copy, kill_server, no_server, no_device, gpu_without_memory, native,
             refused_calls, private_tables, memory_limit, small_device, device_printf, fatal_fault,
             fault_taken_over, idle_exit, hundred_starts]
MEMORY = [addresses, charges]
COMPILES = [machine_code, assembled]


def main(scenarios=None):
    program, driver, name = sys.argv[1:]
    scenario = {each.__name__: each for each in scenarios or SCENARIOS + MEMORY + COMPILES}[name]
    with tempfile.TemporaryDirectory() as folder:
        place = Place(program, driver, folder)
        try:
            scenario(place)
        except BaseException:
            for log in pathlib.Path(folder).glob("*.log"):
                print(f"-- {log.name}\n{log.read_text()}")
            raise
        finally:
            place.clean_up()


if __name__ == "__main__":
    main()
