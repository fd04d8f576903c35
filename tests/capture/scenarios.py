#!/usr/bin/env python3
"""Programs that use NVRTC, under smt on the simulated device, and what the server's journal says.

    scenarios.py SMT NO_DRIVER COMPILER PROGRAM SCENARIO

PROGRAM reaches NVRTC in one of the ways of this folder; each scenario must hold for all of them. NO_DRIVER is
a folder with an empty libcuda.so.1.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PATIENCE = 90
MANAGED = "//toy managed scale smt_scale"
REWRITTEN = MANAGED + "\n#define UNEVEN"   # its PTX does not do as well


class Place:
    """A folder with a server's runtime files, its cache, and the header that the program includes."""

    def __init__(self, smt, no_driver, compiler, program):
        self.smt, self.no_driver, self.program = smt, no_driver, program
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        (self.path / "include").mkdir()
        self.write_header(7)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SMT_")}
        self.environment.update(SMT_RUNTIME_DIR=str(self.path / "run"), SMT_DEVICE="sim",
                                SMT_CACHE_DIR=str(self.path / "cache"),
                                SMT_COMPILE=f"worker={compiler},ptx=0,wait=10")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0]:
            print("".join(path.read_text() for path in self.path.glob("run/*.log")))
        self.stop()
        self.folder.cleanup()

    def write_header(self, value):
        (self.path / "include" / "from_file.h").write_text(f"#define FROM_FILE {value}\n")

    def compile(self, items):
        """The servers' items of SMT_COMPILE, and more: of two of one name the last counts."""
        return f"{self.environment['SMT_COMPILE']},{items}"

    def command(self, command, **environment):
        done = subprocess.run(command, env=self.environment | environment, cwd=self.path, timeout=PATIENCE,
                              capture_output=True, text=True)
        assert done.returncode == 0, f"exit code {done.returncode} of {command}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def run(self, *arguments, **environment):
        return self.command([self.smt, "run", "--", self.program, *arguments], **environment)

    def native(self, *arguments):
        return self.command([self.program, *arguments], LD_LIBRARY_PATH=self.no_driver)

    def stop(self):
        subprocess.run([self.smt, "server", "stop"], env=self.environment, timeout=PATIENCE,
                       capture_output=True)

    def notes(self):
        log = self.command([self.smt, "log", "--json"])
        entries = [json.loads(line) for line in log.splitlines()]
        return [entry["text"] for entry in entries if entry["kind"] == "note"]

    def wait_for_note(self, pattern, count=1):
        deadline = time.monotonic() + PATIENCE
        while len(matching(self.notes(), pattern)) < count:
            assert time.monotonic() < deadline, f"no note {pattern} among {self.notes()}"
            time.sleep(0.02)


def matching(notes, pattern):
    return [note for note in notes if re.search(pattern, note)]


def managed(place):
    """Compiled before the program touches the driver, and after: seen, compiled in managed form, and loaded
    so."""
    for order in [[], ["late"]]:
        assert place.run("run", MANAGED, *order) == "right\n"
        notes = place.notes()
        seen = matching(notes, r"^source captured: program.cu, \d+ bytes: 2 kernels managed, 0 refused; "
                        r"(compiled|kept)")
        assert len(seen) == 1, notes
        assert len(matching(notes, r"loaded in managed form \(2 kernels\)")) == 1, notes
        place.stop()
    assert place.run("run", REWRITTEN) == "right\n"
    assert matching(place.notes(), r"loaded in managed form \(1 kernels\)"), place.notes()


def same_results(place):
    """What NVRTC gives the program is the same, byte for byte, and so is what it says of broken text."""
    for toy in [MANAGED, "#warning careful", "#error broken"]:
        native = place.native("compile", toy)
        assert "compile 0" in native or "broken" in native, native
        assert place.run("compile", toy) == native
        assert place.run("compile", toy, SMT_CAPTURE="0") == native


def turned_off(place):
    assert place.run("run", MANAGED, SMT_CAPTURE="0") == "right\n"
    notes = place.notes()
    assert not matching(notes, "captured|managed"), notes


def by_ptx(place):
    """Without a source, and where the source cannot be managed, there is still the PTX."""
    assert place.run("run", MANAGED, SMT_CAPTURE="0", SMT_COMPILE=place.compile("ptx=1")) == "right\n"
    notes = place.notes()
    assert not matching(notes, "captured"), notes
    assert len(matching(notes,
                        r"^PTX of an image, \d+ bytes: 2 kernels managed by PTX, 0 refused")) == 1, notes
    assert len(matching(notes, r"loaded in managed form, managed by PTX \(2 kernels\)")) == 1, notes
    place.stop()
    assert place.run("run", "//toy refused scale it is shy", SMT_COMPILE=place.compile("ptx=1")) == "right\n"
    notes = place.notes()
    assert matching(notes, "scale: it is shy") and matching(notes, "managed by PTX \\(2 kernels\\)"), notes
    place.stop()
    assert place.run("run", MANAGED, SMT_CAPTURE="0",
                     SMT_COMPILE=place.compile("ptx=1,ptx_size=100")) == "right\n"
    notes = place.notes()
    assert matching(notes, r"as the program made it: its PTX has \d+ bytes, more than ptx_size in "
                    r"SMT_COMPILE \(100\)"), notes


def refused(place):
    assert place.run("run", "//toy refused scale it launches kernels") == "right\n"
    notes = place.notes()
    assert matching(notes, r"captured: program.cu, .* 0 kernels managed, 1 refused \(scale: it launches "
                    r"kernels\)"), notes
    assert matching(notes, r"loaded as the program made it: no kernel of it can be managed"), notes


def incomplete(place):
    """A managed image without the program's kernels is not loaded."""
    assert place.run("run", REWRITTEN + "\n//toy drop") == "right\n"
    assert matching(place.notes(), r"loaded as the program made it: .*"), place.notes()


def slow_compiler(place):
    """The program waits for a while only, and for nothing when it crashes."""
    assert place.run("run", "//toy hang", SMT_COMPILE=place.compile("wait=1,seconds=5")) == "right\n"
    place.wait_for_note("longer than 5 s")
    waited, ended = (place.notes().index(matching(place.notes(), text)[0])
                     for text in ("was not there within 1 s", "longer than 5 s"))
    assert waited < ended, f"the program waited for the compile's end: {place.notes()}"
    place.stop()
    # The proof of the source comes before the crash: the next server waits long enough for both.
    place.environment["SMT_COMPILE"] = place.compile("wait=60")
    assert place.run("run", "//toy crash") == "right\n"
    assert matching(place.notes(), "loaded as the program made it: the compile worker crashed"), place.notes()
    assert place.run("run", MANAGED) == "right\n"
    assert matching(place.notes(), "loaded in managed form"), place.notes()


def many_slow_compiles(place):
    """No load waits for a compile: the program is over before the first of them, and is told so each time."""
    assert place.run("many", "5", "//toy hang",
                     SMT_COMPILE=place.compile("wait=0,seconds=60")) == "right\n" * 5
    notes = place.notes()
    assert len(matching(notes, "loaded as the program made it: its managed form is not made yet")) == 5, notes
    assert not matching(notes, "longer than 60 s"), notes


def later_without_source(place):
    """A program that keeps its PTX in a file: the next server knows the image."""
    place.run("save", "kernel.ptx", MANAGED)
    place.wait_for_note("2 kernels managed")
    place.stop()
    assert place.run("load", "kernel.ptx") == "right\n"
    assert matching(place.notes(), "loaded in managed form"), place.notes()
    place.stop()
    # What became of a rewritten text is for programs that show it.
    place.run("save", "other.ptx", REWRITTEN)
    place.wait_for_note("1 kernels managed")
    place.stop()
    assert place.run("load", "other.ptx") == "right\n"
    assert not matching(place.notes(), "managed"), place.notes()
    place.stop()
    place.command([place.smt, "cache", "clear"])
    assert place.run("load", "kernel.ptx") == "right\n"
    assert not matching(place.notes(), "managed"), place.notes()


def changed_header(place):
    """The text is the same and what it includes is not: nothing old is loaded."""
    place.run("save", "kernel.ptx", MANAGED)
    place.wait_for_note("2 kernels managed")
    place.write_header(8)
    place.run("save", "other.ptx", MANAGED)
    place.wait_for_note("2 kernels managed", count=2)
    assert len(matching(place.notes(), "compiled in")) == 2, place.notes()
    place.write_header(7)
    assert place.run("run", MANAGED) == "right\n"
    assert matching(place.notes(), "loaded in managed form"), place.notes()


def real_worker(place):
    """smt-compile itself: with the rewriter or without, the source is seen and the program is right."""
    place.environment["SMT_COMPILE"] = place.compile(
        f"worker={pathlib.Path(place.smt).parent / 'smt-compile'}")
    assert place.run("run", MANAGED) == "right\n"
    notes = place.notes()
    assert matching(notes, "^source captured: program.cu"), notes
    assert matching(notes, "an image is loaded"), notes


def main():
    smt, no_driver, compiler, program, scenario = sys.argv[1:]
    with Place(smt, no_driver, compiler, program) as place:
        globals()[scenario](place)


if __name__ == "__main__":
    main()
