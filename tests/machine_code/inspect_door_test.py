#!/usr/bin/env python3
"""smt inspect --door on files of all kinds that nvcc makes, and on what is no such file.

    inspect_door_test.py SMT NVCC
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KERNELS = pathlib.Path(__file__).resolve().parent / "kernels.cu"
COUNT = KERNELS.read_text().count("__global__")
BOTH = ["-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=[sm_90,compute_90]"]
EMPTY = "a cubin without symbols or without .nv.info"
RELOCATABLE = "the linker still has to lay it out"


class Test:
    def __init__(self, smt, nvcc, folder):
        self.smt, self.nvcc, self.folder, self.problems = smt, nvcc, pathlib.Path(folder), []
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SMT_")}
        self.environment["SMT_CACHE_DIR"] = str(self.folder / "cache")
        self.text = self.build("k.ptx", "-arch=compute_80", "-ptx", source=KERNELS)

    def expect(self, what, got, wanted):
        if got != wanted:
            self.problems.append(f"{what}:\n  got    {got}\n  wanted {wanted}")

    def build(self, name, *options, source=None):
        """Of the kernels' PTX, which is made once, where no other source is named."""
        source = source or self.text
        done = subprocess.run([self.nvcc, "-std=c++20", *options, "-o", self.folder / name, source],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{options}\n{done.stdout}{done.stderr}")
        return self.folder / name

    def inspect(self, path, *options):
        return subprocess.run([self.smt, "inspect", str(path), "--door", *options], env=self.environment,
                              capture_output=True, text=True)

    def rows(self, path, *options):
        done = self.inspect(path, "--json", *options)
        if done.returncode:
            self.problems.append(f"{path}: exit code {done.returncode}: {done.stderr}")
            return []
        rows = json.loads(done.stdout)["door"]
        for row in rows:
            self.expect(f"{path.name}: a speed", row.pop("megabytes_per_second") > 0, True)
            self.expect(f"{path.name}: bytes", row.pop("bytes") > 1000, True)
        return rows

    @staticmethod
    def row(architecture, **others):
        """Of kernels.cu. sm_80 has an attribute for one of its kernels of which it is not known what it
        says."""
        left = {"its parameters do not fill its constant bank": 1} if architecture == 80 else {}
        return {"architecture": architecture, "cubins": 1, "patched_cubins": 1, "kernels": COUNT,
                "patched": COUNT - len(left),
                "kernels_left_alone": left, "cubins_left_alone": {}, **others}

    def containers(self):
        library = self.build("library.so", *BOTH, "-shared", "-Xcompiler", "-fPIC", source=KERNELS)
        linked = {"cubins": 2, "cubins_left_alone": {EMPTY: 1}}   # nvcc's linker adds one without kernels
        self.expect("a library", self.rows(library), [self.row(80, **linked), self.row(90, **linked)])
        self.expect("one architecture", self.rows(library, "--arch", "sm_80"), [self.row(80, **linked)])
        text = self.inspect(library).stdout.splitlines()
        self.expect("text", text[1].split(";")[0],
                    f"sm_80: {COUNT - 1} of {COUNT} kernels get a door, in 1 of 2 cubins")
        self.expect("reasons", text[2:4],
                    ["  left alone, 1 kernel: its parameters do not fill its constant bank",
                     f"  left alone, 1 cubin: {EMPTY}"])
        self.expect("a fatbin", self.rows(self.build("f.fatbin", *BOTH, "-fatbin")),
                    [self.row(80), self.row(90)])
        self.expect("a compressed fatbin",
                    self.rows(self.build("c.fatbin", *BOTH, "-fatbin", "-Xfatbin", "-compress-all")),
                    [self.row(80), self.row(90)])
        self.cubin = self.build("k.cubin", "-arch=sm_90", "-cubin")
        self.expect("a cubin", self.rows(self.cubin), [self.row(90)])

    def left_alone(self):
        relocatable = self.build("rdc.o", "-arch=sm_90", "-dc")
        self.expect("relocatable code", self.rows(relocatable), 
                    [self.row(90, patched_cubins=0, kernels=0, patched=0,
                              cubins_left_alone={RELOCATABLE: 1})])
        text = self.inspect(relocatable).stdout
        self.expect("its text", f"  left alone, 1 cubin: {RELOCATABLE}\n" in text, True)
        # The exits of one kernel become an attribute that is unknown.
        bytes_ = bytearray(self.cubin.read_bytes())
        bytes_[re.search(rb"\x04\x1c[\x04\x08]\x00", bytes_).start() + 1] = 0xEE
        changed = self.folder / "changed.cubin"
        changed.write_bytes(bytes_)
        row = self.rows(changed)[0]
        self.expect("an unknown attribute", (row["patched"], row["kernels_left_alone"]),
                    (COUNT - 1, {"attribute 0xee is unknown": 1}))

    def errors(self):
        words = self.folder / "words"
        words.write_text("no device code at all\n")
        for path, options, said in [(self.text, [], "has no machine code"),
                                    (self.cubin, ["--arch", "sm_80"], "has no machine code for sm_80"),
                                    (words, [], f"{words} is "), (self.folder / "none", [], "cannot read"),
                                    (self.cubin, ["--arch", "old"], "--arch takes an architecture")]:
            done = self.inspect(path, *options)
            self.expect(f"{path.name} {options}: exit code", done.returncode in (1, 2) and done.stdout == "",
                        True)
            self.expect(f"{path.name} {options}: '{said}' in {done.stderr}", said in done.stderr, True)


def main(smt, nvcc):
    with tempfile.TemporaryDirectory() as folder:
        test = Test(smt, nvcc, folder)
        test.containers()
        test.left_alone()
        test.errors()
        print("\n".join(test.problems) or f"{COUNT} kernels in files of six kinds, and five errors")
        return 1 if test.problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
