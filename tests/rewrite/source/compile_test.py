#!/usr/bin/env python3
"""What `smt rewrite` writes is what golden files say, and compiles:

    compile_test.py cases|programs SMT_REWRITE TOOLKIT SOURCE_ROOT [thorough]

cases     the cases beside this file, which also have to be as their golden files: those for NVRTC with it,
          the others and every third with nvcc for one of three generations of GPUs, in turns. thorough: all
          with nvcc too, for all three
programs  the kernels of the other tests, every eighth file rewritten and compiled with nvcc for one
          generation; thorough: all files, and the examples, half of which tests/dispatch builds in any case
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

import cases
import golden_test
import nvrtc

ARCHITECTURES = (75, 90, 100)
PROGRAMS = ("examples", "tests/gpu/programs", "tests/ptx/programs", "tests/ptx/exec/kernels",
            "tests/image/programs",
            "tests/simulated/programs")
# Its name has a hash of the file in it, where Clang has another word.
# the length of all that NVRTC calls an unnamed namespace: hashes, at times a number more
UNNAMED = re.compile(r"(\d+)_GLOBAL__N_")


def one_name(symbol):
    while found := UNNAMED.search(symbol):
        symbol = symbol[:found.start()] + "<unnamed>" + symbol[found.end(1) + int(found[1]):]
    return symbol


def entries(ptx):
    return {one_name(name) for name in re.findall(r"\.entry\s+([\w$]+)", ptx)}


class Compiler:
    def __init__(self, program, toolkit, root, thorough):
        self.thorough = thorough
        self.program, self.toolkit, self.root = program, pathlib.Path(toolkit), pathlib.Path(root)
        self.nvrtc = nvrtc.Nvrtc(next((self.toolkit / "lib64").glob("libnvrtc.so*")))
        self.worker = self.root / "rewriter" / "device" / "smt_worker.h"

    def nvcc(self, text, folder, options):
        """What it complains of; empty: nothing."""
        with tempfile.TemporaryDirectory() as place:
            file = pathlib.Path(place) / "rewritten.cu"
            file.write_text(text)
            done = subprocess.run([self.toolkit / "bin" / "nvcc", file, "-o", f"{place}/out",
                                   "-I", self.worker.parent, "-I",
                                   folder, "-I", self.root, "-w", *options], capture_output=True,
                                  text=True, timeout=300)
            return "" if done.returncode == 0 else (done.stdout + done.stderr)[:2000]

    def case(self, case, number):
        result = cases.rewrite(self.program, case)
        if differs := golden_test.difference(case, result):
            return differs
        if result.failed:
            return ""
        by_nvrtc = case.dialect == "nvrtc"
        if not self.thorough and by_nvrtc and number % 3:
            return self.with_nvrtc(case, result)
        return self.by_nvcc(case, number, result.text) or (
            self.with_nvrtc(case, result) if by_nvrtc else "")

    def by_nvcc(self, case, number, text):
        options = [option for option in case.options if option != "-default-device"]   # nvcc knows none
        kind = ["-c"] if case.dialect == "nvcc" else ["-fatbin", "-include", "cstdio,cassert"]
        architectures = [one for one in ARCHITECTURES if one >= case.oldest]
        chosen = architectures if self.thorough else [architectures[number % len(architectures)]]
        targets = [f"-gencode=arch=compute_{one},code=compute_{one}" for one in chosen]
        return self.nvcc(text, case.path.parent, [*kind, "-std=c++17", *targets, *options])

    def with_nvrtc(self, case, result):
        options = ["--gpu-architecture=compute_90", *case.options]
        try:
            ptx = self.nvrtc.compile(result.text, options, case.names,
                                     {"smt_worker.h": self.worker.read_text()})
        except RuntimeError as problem:
            return f"NVRTC: {problem}"
        there = entries(ptx)
        for line, *symbols in result.kernels:
            missing = [symbol for symbol in symbols if symbol and one_name(symbol) not in there]
            if missing:
                return f"{line}: not in the module: {' '.join(missing)}; there are {' '.join(sorted(there))}"
        return ""

    def file(self, path, _):
        options = ["-std=c++17", "--extended-lambda"]
        result = cases.rewrite(self.program, cases.Case(path, "nvcc", [], options))
        if result.failed:
            return result.report
        if path.parent.name == "examples":
            for line in result.report.splitlines():
                if "refused" in line and "is defined in example.h" not in line:
                    return line
        return self.nvcc(result.text, path.parent, ["-ptx", "-arch=sm_90", *options])


def main(what, program, toolkit, root, thorough=""):
    compiler = Compiler(program, toolkit, root, bool(thorough))
    if what == "cases":
        jobs = {case.path: (compiler.case, case) for case in cases.all_cases()}
    else:
        paths = [path for folder in PROGRAMS for path in sorted((compiler.root / folder).glob("*.cu"))]
        if not thorough:
            paths = [path for path in paths if path.parent.name != "examples"][::8]
        jobs = {path: (compiler.file, path) for path in paths}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        problems = list(pool.map(lambda job: job[1][0](job[1][1], job[0]), enumerate(jobs.values())))
    problems = [f"{path}: {problem}" for path, problem in zip(jobs, problems) if problem]
    if what == "cases":
        problems += golden_test.without_case()
    print("\n".join(problems))
    print(f"{len(jobs)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
