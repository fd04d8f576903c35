#!/usr/bin/env python3
"""smt index, and what a server makes of it, on the simulated device.

    index.py program SMT NVCC                  a program with all that only nvcc names, and files that are
                                               refused
    index.py examples SMT EXAMPLES CHECKSUMS   some examples of the folder EXAMPLES, from their own build
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE = 240
HERE = pathlib.Path(__file__).resolve().parent
FLAGS = ["-std=c++17", "-gencode", "arch=compute_90,code=[sm_90,compute_90]"]


class Place:
    def __init__(self, smt):
        self.smt = smt
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SMT_")}
        self.environment.update(SMT_RUNTIME_DIR=str(self.path / "run"),
                                SMT_CACHE_DIR=str(self.path / "cache"),
                                SMT_COMPILE="ptx=0,wait=60")   # what is not indexed stays as it is

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0]:
            print("".join(path.read_text() for path in self.path.glob("run/*.log")))
        self.stop()
        self.folder.cleanup()

    def stop(self):
        subprocess.run([self.smt, "server", "stop"], env=self.environment, timeout=PATIENCE,
                       capture_output=True)

    def command(self, *command):
        done = subprocess.run(command, env=self.environment, cwd=self.path, timeout=PATIENCE,
                              capture_output=True, text=True)
        assert done.returncode == 0, f"exit code {done.returncode} of {command}:\n{done.stdout}{done.stderr}"
        print(done.stdout, end="")
        return done.stdout

    def write_commands(self, commands):
        (self.path / "compile_commands.json").write_text(json.dumps(commands))

    def run(self, program, *arguments, stress=None):
        """What it printed, and the notes of a server that ran for it alone."""
        more = ["--stress", str(stress)] if stress else []
        output = self.command(self.smt, "run", "--device", "sim", *more, "--", program, *arguments)
        deadline = time.monotonic() + PATIENCE
        while True:   # the session ends a moment after its program
            entries = [json.loads(line)
                       for line in self.command_quietly(self.smt, "log", "--json").splitlines()]
            notes = [entry["text"] for entry in entries if entry["kind"] == "note"]
            if not stress or matching(notes, "under stress") or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.stop()
        return output, notes

    def command_quietly(self, *command):
        return subprocess.run(command, env=self.environment, timeout=PATIENCE, capture_output=True,
                              text=True, check=True).stdout


def matching(notes, pattern):
    return [note for note in notes if re.search(pattern, note)]


def expect(lines, pattern):
    assert re.search(pattern, lines, re.MULTILINE), f"no line {pattern} in\n{lines}"


def program(place, nvcc):
    shutil.copy(HERE / "program.cu", place.path)
    for name in ("relocatable", "broken", "missing", "stale"):
        (place.path / f"{name}.cu").write_text("__global__ void kernel(int* a) { *a = undeclared; }\n")
    place.command(nvcc, *FLAGS, "-c", "program.cu", "-o", "program.o")
    place.command(nvcc, "-cudart", "shared", "program.o", "-o", "program")
    shutil.copy(place.path / "program.o", place.path / "broken.o")
    shutil.copytree(place.path, place.path / "old", ignore=lambda *_: {"old"})   # copies keep their times
    os.utime(place.path / "old" / "program.cu")
    directory = str(place.path)

    def line(name, *more, folder=directory):
        return {"directory": folder, "file": f"{name}.cu",
                "command": " ".join([nvcc, *FLAGS, *more, "-x", "cu", "-c", f"{name}.cu", "-o", f"{name}.o"])}

    place.write_commands([line("relocatable", "-rdc=true"), line("broken"), line("missing"),
                          line("program", folder=directory + "/old"), line("program"),
                          {"directory": directory, "file": "host.cpp",
                           "arguments": ["c++", "-c", "host.cpp"]}])
    lines = place.command(place.smt, "index", ".")
    expect(lines,
           r"^relocatable.cu: not indexed: it is compiled to be linked with other device code \(-rdc=true\)$")
    expect(lines, r"^broken.cu: not indexed: .*broken.cu:1: use of undeclared identifier 'undeclared'$")
    expect(lines,
           r"^missing.cu: not indexed: its object .*missing.o: No such file or directory; build first$")
    expect(lines, r"^program.cu: not indexed: its object is older than .*old/program.cu: build first$")
    expect(lines, r"^program.cu: 6 of 6 kernels managed$")
    expect(lines, r"^5 CUDA files, 1 indexed, 6 of their 6 kernels managed")
    expect(place.command(place.smt, "index", "--list"), r"program.cu  sm_90, compute_90$")

    for seed in (None, 1, 2):
        output, notes = place.run("./program", stress=seed)
        assert output.startswith("right"), output
        assert matching(notes, r"loaded in managed form \(6 kernels\)"), notes
        assert not seed or matching(notes, r"under stress: [1-9]"), notes
    place.command(place.smt, "cache", "clear")   # the source is still there
    output, notes = place.run("./program")
    assert output.startswith("right") and matching(notes, r"^source indexed: .*program.cu, \d+ bytes: 6 "
                                                   r"kernels managed, 0 refused; compiled in"), notes
    place.command(place.smt, "index", "--forget")
    output, notes = place.run("./program")
    assert output.startswith("right") and not matching(notes, "managed form|source"), notes


def examples(place, folder, checksums):
    names = ("spmv", "cfd")
    known = dict(re.findall(r"^(\w+) trivial (\w+)$", pathlib.Path(checksums).read_text(), re.MULTILINE))
    commands = json.loads((pathlib.Path(folder) / "compile_commands.json").read_text())
    place.write_commands([command for command in commands if pathlib.Path(command["file"]).stem in names])
    expect(place.command(place.smt, "index", "."), r"^2 CUDA files, 2 indexed, 7 of their 7 kernels managed")
    for name in names:
        output, notes = place.run(f"{folder}/shared/{name}", "--size", "trivial",
                                  "--iterations", "3", stress=7)
        expect(output, f"^checksum {known[name]}$")
        assert matching(notes, "loaded in managed form") and matching(notes, "under stress: [1-9]"), notes


def main():
    what, smt, *rest = sys.argv[1:]
    with Place(smt) as place:
        {"program": program, "examples": examples}[what](place, *rest)


if __name__ == "__main__":
    main()
