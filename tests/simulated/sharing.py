#!/usr/bin/env python3
"""Device memory and events that several processes share, on the simulated device.

    sharing.py SMT FOLDER_OF_PROGRAMS SCENARIO

The processes are of programs/shares.cpp, which obeys commands: a command's answer is there when what it asks
for is done, so nothing here waits for time to pass.
"""

import pathlib
import re
import signal
import socket
import subprocess

from place import PATIENCE, Place, finish, run_scenario, wait_for
from takeover import Over, fault

BYTES = 4 << 20
CHUNK = 2 << 20
REFUSED = "CUDA_ERROR_INVALID_VALUE"


class Stage(Place):
    """Its processes wait for commands: the device's clock goes on soon without them."""

    def __init__(self, smt, programs, **settings):
        super().__init__(smt, programs, grace=20, **settings)


class Party:
    """A process that shares."""

    def __init__(self, place, tenant=None, options=(), preloaded=False, **how):
        program = str(place.programs / "sim_shares")
        environment = dict(place.environment)
        if preloaded:   # as a program that was not started by `smt run`
            library = pathlib.Path(place.smt).parent / "../lib/libsmt.so"
            environment.update(LD_PRELOAD=str(library.resolve()), SMT_REAL_DRIVER="none")
            command = [program]
        else:
            command = [place.smt, "run", *(["--tenant", tenant] if tenant else []), *options, "--", program]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, **how)

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        assert line.endswith("\n"), f"it ended: {self.process.wait(timeout=PATIENCE)}"
        return line.strip()

    def ask(self, *words):
        self.tell(*words)
        return self.hear()

    def end(self, code=0):
        finish(self.process, code)

    def kill(self):
        self.process.kill()
        self.end(-signal.SIGKILL)


def device_memory(place):
    return float(re.search(r"memory +([\d.]+) MiB device", place.server_status())[1])


def wait_for_memory(place, mib):
    wait_for(lambda: device_memory(place) == mib, lambda: f"{device_memory(place)} MiB are held, not {mib}")


def both_see_it(smt, programs):
    """Each sees what the other writes, in large and in small allocations, at an address of its own."""
    with Stage(smt, programs) as place:
        one, two = Party(place, "family"), Party(place, "family")
        for size in (BYTES, 1000):
            mine = one.ask("allocate", size)
            one.ask("fill", mine, 41)
            handle = one.ask("share", mine)
            assert one.ask("share", mine) == handle
            its = two.ask("open", handle)
            assert its != mine and two.ask("read", its) == "41"
            assert two.ask("fill", its, 42) == "ok" and one.ask("read", mine) == "42"
            assert two.ask("slow", its, 43) == "ok" and two.ask("read", its) == "43"
            assert one.ask("read", mine) == "43"
            # Once more is the same address, until it is closed as often.
            assert two.ask("open", handle) == its
            assert two.ask("close", its) == "ok" and two.ask("read", its) == "43"
            assert two.ask("close", its) == "ok" and two.ask("close", its) == REFUSED
            assert two.ask("free", its) == REFUSED
            assert one.ask("free", mine) == "ok" and two.ask("open", handle) == REFUSED
        one.end(), two.end()
        place.wait_until_empty()


def own_addresses_only(smt, programs):
    """An importer may pass what it opened in calls, and nothing beyond the memory that it was mapped with;
    what cannot be shared is refused."""
    with Stage(smt, programs) as place:
        one, two = Party(place, "family"), Party(place, "family")
        mine = one.ask("allocate", BYTES)
        handle = one.ask("share", mine)
        its = two.ask("open", handle)
        assert two.ask("reach", its, BYTES) == "ok"
        assert two.ask("read", mine) == REFUSED, "the other one's address is not this one's"
        assert one.ask("open", handle) == "CUDA_ERROR_INVALID_CONTEXT"
        assert one.ask("share", one.ask("pool", BYTES)) == REFUSED
        assert two.ask("share", its) == REFUSED
        assert two.ask("open", "00" * 64) == REFUSED
        assert two.ask("open", handle[:16] + "00" * 56) == REFUSED
        one.end(), two.end()
        place.wait_until_empty()


def other_tenant_refused(smt, programs):
    """Memory, events and descriptors of another tenant are refused, and the log says so."""
    ours, theirs = socket.socketpair()
    with Stage(smt, programs) as place, ours, theirs:
        one = Party(place, "family", pass_fds=[ours.fileno()])
        other = Party(place, "stranger", pass_fds=[theirs.fileno()])
        mine = one.ask("allocate", BYTES)
        one.ask("event")
        physical = one.ask("create", CHUNK, "descriptor")
        assert one.ask("descriptor", physical) == "ok" and one.ask("send", ours.fileno()) == "ok"
        assert other.ask("open", one.ask("share", mine)) == REFUSED
        assert other.ask("open_event", one.ask("share_event")) == REFUSED
        assert other.ask("receive", theirs.fileno()) == "ok"
        assert other.ask("import") == REFUSED
        one.end(), other.end()
        place.wait_until_empty()
        lines = re.findall(r"\(stranger, pid \d+\): it may not open (\w+ ?\w*) of another tenant's",
                           place.log())
        assert sorted(lines) == ["an event", "memory", "memory"], place.log()


def without_a_name(smt, programs):
    """Programs without a tenant's name: a program and those that it starts share; two programs do not."""
    with Stage(smt, programs) as place:
        for preloaded in (False, True):
            how = {"preloaded": preloaded, "start_new_session": True}
            one, other = Party(place, **how), Party(place, **how)
            mine = one.ask("allocate", BYTES)
            handle = one.ask("share", mine)
            one.tell("child", "open", handle)
            opened = one.hear()
            assert re.fullmatch("[0-9a-f]+", opened), opened
            assert one.hear() == "over"
            assert other.ask("open", handle) == REFUSED
            one.end(), other.end()
        place.wait_until_empty()


def event_orders(smt, programs):
    """What is behind a wait for an event of another process comes behind what that one recorded it behind,
    whichever of the two is more urgent."""
    with Stage(smt, programs) as place:
        for first, second in (("normal", "normal"), ("low", "high"), ("high", "low")):
            one = Party(place, "family", options=("--priority", first))
            two = Party(place, "family", options=("--priority", second))
            mine = one.ask("allocate", BYTES)
            its = two.ask("open", one.ask("share", mine))
            one.ask("fill", mine, 1), one.ask("event")
            assert two.ask("open_event", one.ask("share_event")) == "ok"
            assert two.ask("query") == "CUDA_SUCCESS" or two.ask("query") == "ok"
            for number in range(2, 6):
                assert one.ask("slow", mine, number) == "ok"
                assert two.ask("after", its) == str(number), (first, second)
            assert one.ask("slow", mine, 7) == "ok" and two.ask("read_after", its) == "7"
            # The other way round, too.
            assert two.ask("slow", its, 8) == "ok" and one.ask("after", mine) == "8"
            assert two.ask("slow", its, 9) == "ok" and one.ask("read_after", mine) == "9"
            one.end(), two.end()
        place.wait_until_empty()


def waiter_holds_back_none(smt, programs):
    """A more urgent process that waits for an event of another one does not hold that one back, whose kernel
    is yet to end the wait."""
    with Stage(smt, programs) as place:
        one = Party(place, "family", options=("--priority", "low"))
        two = Party(place, "family", options=("--priority", "high"))
        mine = one.ask("allocate", BYTES)
        its = two.ask("open", one.ask("share", mine))
        one.ask("event"), two.ask("open_event", one.ask("share_event"))
        assert one.ask("fill", mine, 0) == "ok" and one.ask("block", mine) == "ok"
        result = f"{int(its, 16) + 64:x}"
        assert two.ask("behind", result, 5) == "ok"
        assert one.ask("unblock", mine) == "ok"
        assert two.ask("wait") == "ok" and two.ask("read", result) == "5"
        one.end(), two.end()
        place.wait_until_empty()


def exporter_ends_first(smt, programs):
    """What an importer has open stays what it is, also when its exporter frees it or ends, and no other
    program gets it before the importer has closed it."""
    with Stage(smt, programs, memory="64M") as place:
        for end in ("end", "kill", "free", "reset"):
            one, two = Party(place, "family"), Party(place, "family")
            mine = one.ask("allocate", 40 << 20)
            one.ask("fill", mine, 5)
            its = two.ask("open", one.ask("share", mine))
            if end == "end":
                one.end()
            elif end == "kill":
                one.kill()
            else:
                assert one.ask(end, mine) == "ok"
            other = Party(place, "stranger")
            assert other.ask("allocate", 40 << 20) == "CUDA_ERROR_OUT_OF_MEMORY", end
            small = other.ask("allocate", BYTES)
            assert other.ask("fill", small, 6) == "ok"
            assert two.ask("read", its) == "5" and two.ask("slow", its, 7) == "ok"
            assert two.ask("read", its) == "7", end
            assert two.ask("close", its) == "ok"
            if end in ("end", "kill"):
                wait_for_memory(place, BYTES / (1 << 20))
            large = other.ask("allocate", 40 << 20)
            assert other.ask("read", large) == "0", "memory of another tenant's is zeroed"
            other.end(), two.end()
            if end in ("free", "reset"):
                one.end()
            place.wait_until_empty()


def importer_killed(smt, programs):
    """A process that is killed gives back what it opened, and the exporter goes on."""
    with Stage(smt, programs, memory="64M") as place:
        one, two = Party(place, "family"), Party(place, "family")
        mine = one.ask("allocate", 40 << 20)
        one.ask("event")
        its = two.ask("open", one.ask("share", mine))
        assert two.ask("open_event", one.ask("share_event")) == "ok"
        assert two.ask("slow", its, 3) == "ok"
        two.kill()
        assert one.ask("after", mine) in ("0", "3")   # what it had begun ends, or is dropped
        assert one.ask("slow", mine, 4) == "ok" and one.ask("after", mine) == "4"
        one.end()
        place.wait_until_empty()
        again = Party(place, "stranger")
        assert re.fullmatch("[0-9a-f]+", again.ask("allocate", 40 << 20))
        again.end()
        place.wait_until_empty()


def descriptors(smt, programs):
    """Memory that a program maps itself, by a descriptor that goes over a socket. The descriptor keeps it."""
    ours, theirs = socket.socketpair()
    with Stage(smt, programs) as place, ours, theirs:
        one = Party(place, "family", pass_fds=[ours.fileno()])
        two = Party(place, "family", pass_fds=[theirs.fileno()])
        plain = one.ask("create", CHUNK, "plain")
        assert one.ask("descriptor", plain) == REFUSED and one.ask("release", plain) == "ok"
        physical = one.ask("create", CHUNK, "descriptor")
        mine = one.ask("map", physical)
        assert one.ask("types", mine) == "1" and one.ask("fill", mine, 11) == "ok"
        assert one.ask("descriptor", physical) == "ok" and one.ask("send", ours.fileno()) == "ok"
        assert two.ask("receive", theirs.fileno()) == "ok"
        imported = two.ask("import")
        its = two.ask("map", imported)
        assert two.ask("read", its) == "11" and two.ask("types", its) == "1"
        assert two.ask("fill", its, 12) == "ok" and one.ask("read", mine) == "12"
        # Nothing is left of it but the descriptor that the second one has.
        assert one.ask("close_descriptor") == "ok"
        one.end()
        assert two.ask("unmap", its) == "ok" and two.ask("release", imported) == "ok"
        again = two.ask("map", two.ask("import"))
        assert two.ask("read", again) == "12"
        two.end()
        place.wait_until_empty()


def descriptor_inherited(smt, programs):
    """A child imports by a descriptor that it has inherited, and so does the exporter itself."""
    with Stage(smt, programs) as place:
        one = Party(place)
        physical = one.ask("create", CHUNK, "descriptor")
        assert one.ask("fill", one.ask("map", physical), 21) == "ok"
        assert one.ask("descriptor", physical) == "ok"
        one.tell("child", "import")
        assert re.fullmatch("[0-9a-f]+", one.hear()) and one.hear() == "over"
        assert one.ask("read", one.ask("map", one.ask("import"))) == "21"
        one.end()
        place.wait_until_empty()


def descriptor_closed(smt, programs):
    """Memory whose handle is released is given back with the last copy of its descriptor, and not before."""
    ours, theirs = socket.socketpair()
    with Stage(smt, programs) as place, ours, theirs:
        one = Party(place, "family", pass_fds=[ours.fileno()])
        two = Party(place, "family", pass_fds=[theirs.fileno()])
        physical = one.ask("create", CHUNK, "descriptor")
        assert one.ask("descriptor", physical) == "ok" and one.ask("send", ours.fileno()) == "ok"
        assert one.ask("release", physical) == "ok" and one.ask("close_descriptor") == "ok"
        assert two.ask("receive", theirs.fileno()) == "ok"
        assert two.ask("release", two.ask("import")) == "ok", "a copy is there"
        assert device_memory(place) == CHUNK / (1 << 20)
        assert two.ask("close_descriptor") == "ok"
        wait_for_memory(place, 0)
        one.end(), two.end()
        place.wait_until_empty()


def takeover_ends_them(smt, programs):
    """Sessions that share do not go on in another process, and the log has the reason."""
    with Over(smt, programs) as place:
        one, two = Party(place, "family"), Party(place, "other")
        three, four = Party(place, "other"), Party(place, "third")
        physical = four.ask("create", CHUNK, "descriptor")
        assert four.ask("descriptor", physical) == "ok" and four.ask("release", physical) == "ok"
        mine = one.ask("allocate", BYTES)
        one.ask("share", mine)
        two.ask("event")
        assert three.ask("open_event", two.ask("share_event")) == "ok"
        place.await_standby()
        fault(place)
        memory, events = (f"it shares {what} with other processes" for what in ("memory", "events"))
        for party, reason in ((one, memory), (two, events), (three, events),
                              (four, "descriptors of its memory are open")):
            assert party.ask("allocate", BYTES) == "CUDA_ERROR_ILLEGAL_ADDRESS"
            party.kill()
            line = rf"pid {party.process.pid}\): it ends, as .*{reason}"
            assert re.search(line, place.log()), place.log()


if __name__ == "__main__":
    run_scenario(globals())
