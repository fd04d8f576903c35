#!/usr/bin/env python3
"""Images that a worker opens before the driver gets them: packed ones, hostile ones, and workers that end
over one.

    opened.py SMT FAKE_DRIVER SCENARIO

As scenarios.py, on whose helpers it stands. The worker is tests/jit/toy_worker.cpp's.
"""

import os
import pathlib
import signal
import sys

from scenarios import bystander_with, finish, main, wait_for

TESTS = pathlib.Path(__file__).resolve().parent.parent
CORPUS = TESTS / "fuzz" / "corpus" / "fatbin"
sys.path.insert(0, str(TESTS / "image"))
import damage  # noqa: E402

INVALID_IMAGE, NO_BINARY, OPERATING_SYSTEM = 200, 209, 304


def images_in(place, cases):
    """Files with the cases' images, by number."""
    paths = []
    for number, content in enumerate(cases):
        paths.append(place.folder / f"image{number}")
        paths[-1].write_bytes(content)
    return paths


def lz4(data):
    """As the format has it where nothing repeats."""
    rest = len(data) - 15
    return b"\xf0" + b"\xff" * (rest // 255) + bytes([rest % 255]) + data


def packed_cubin():
    cubin = (CORPUS / "cubin").read_bytes()
    return damage.fatbin(damage.entry(lz4(cubin), kind=2, flags=damage.FLAG_LZ4, size=len(cubin)))


def opened_images(place):
    """This driver takes cubins alone: what loads was unpacked before. What a worker does with one image is
    that load's."""
    toy = f"worker={place.bin / 'toy_compile'},ptx=0"
    good = packed_cubin()
    with_entry = lambda stored, size: damage.fatbin(damage.entry(stored, kind=2, flags=damage.FLAG_ZSTD,
                                                                 size=size))
    # The load's error, the linker's, which has nothing unpacked, and the load's words.
    cases = [(good, 0, 0, ""),
             (with_entry(damage.zstd_bomb(16), 100), INVALID_IMAGE, 0, ""),
             (with_entry(damage.zstd_bomb(16), 16 << 20), INVALID_IMAGE, 0, ""),
             (damage.put(good, 16 + 56, "Q", 1 << 40), INVALID_IMAGE, 0, ""),
             (damage.put(good, 16 + 8, "Q", damage.MOST - 63), INVALID_IMAGE, INVALID_IMAGE, ""),
             (damage.put(good, 16 + 28, "I", 80), NO_BINARY, 0, ""),
             (good, 0, 0, ""),
             (b"//toy kill\n", INVALID_IMAGE, INVALID_IMAGE, "the compile worker crashed: Killed"),
             (b"//toy crash\n", INVALID_IMAGE, INVALID_IMAGE,
              "the compile worker crashed: Segmentation fault"),
             (b"//toy beyond\n", INVALID_IMAGE, INVALID_IMAGE, "the compile worker answered nonsense"),
             (good, 0, 0, "")]
    bystander_with(place, SMT_COMPILE=toy)
    server = place.server_pid()
    output = place.run("opened", *images_in(place, [case[0] for case in cases]), SMT_COMPILE=toy)[0]
    assert output.splitlines() == [f"{error} {link_error} {words}"
                                   for _, error, link_error, words in cases], output
    assert place.server_pid() == server
    log = "".join(path.read_text() for path in place.folder.glob("*.log"))
    assert "an image cannot be loaded: the compile worker crashed: Killed" in log, log


def paused_worker(server):
    """The server's child that toy_compile's `hang` has stopped; none: None."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (process / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            if int(parent) == server and state == "T":
                return int(process.name)
        except OSError:   # it is gone
            pass
    return None


def hanging_image(place):
    """Other tenants load meanwhile; and when its worker is killed in the midst, its load ends and the next
    one is right."""
    toy = f"worker={place.bin / 'toy_compile'},ptx=0,workers=2"
    hang, good = images_in(place, [b"//toy hang\n", packed_cubin()])
    hanging = place.start("opened", hang, good, tenant="hanging", SMT_COMPILE=toy)
    wait_for(lambda: "no server" not in place.status(), "there is a server")
    server = place.server_pid()
    wait_for(lambda: paused_worker(server), "a worker hangs")
    loading = paused_worker(server)
    assert place.run("opened", good, tenant="other", SMT_COMPILE=toy)[0] == "0 0 \n"
    os.kill(loading, signal.SIGKILL)
    wait_for(lambda: paused_worker(server) not in (None, loading), "another hangs over the linker's input")
    os.kill(paused_worker(server), signal.SIGKILL)
    assert finish(hanging)[0] == f"{INVALID_IMAGE} {INVALID_IMAGE} the compile worker crashed: Killed\n0 0 \n"


def no_worker_to_open(place):
    """Images are refused, with a reason; what the driver refuses by its first bytes goes there as ever."""
    output = place.run("opened", *images_in(place, [packed_cubin(), b"what"]),
                       SMT_COMPILE="worker=/bin/false,ptx=0")[0]
    assert output.splitlines() == [f"{OPERATING_SYSTEM} {OPERATING_SYSTEM} the compile worker ended with "
                                   "exit code 1", f"{INVALID_IMAGE} {INVALID_IMAGE} "], output


if __name__ == "__main__":
    main([opened_images, hanging_image, no_worker_to_open])
