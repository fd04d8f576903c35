#!/usr/bin/env python3
"""PTX of four compilers, all the way: parsed, printed and parsed again to the same tree, turned into
persistent form, and assembled.

    corpus_test.py PTX_PRINT PTX_PERSIST TOOLKIT CLANG|- [--thorough] [OUTPUT]

nvcc      programs/ and persistent/programs/, each for the generations that it is meant for; what is printed
          must assemble to the original's machine code (compile_test.py)
NVRTC     the rewriter's cases, one construct each
Clang     the same cases, and persistent/programs/; without a Clang (-) that is said, and what it had to give
          is not asked for
Triton    triton/, made by its kernels.py

A text is tried for one of sm_75, sm_90 and sm_100 from its own target on, in turns, nvcc makes one text
of a source, cases go to Clang and to NVRTC in turns, and every other text of Triton's is taken; with
--thorough for each, a text for each, all to both, and all. One that is for one architecture only
(sm_90a) is tried for that. What came out must assemble wherever what went in does, and that must be
somewhere. A module that is left as it was is counted by its reason.
With OUTPUT the texts stay there.
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "rewrite" / "source"))
import cases  # noqa: E402
import compile_test  # noqa: E402
import nvrtc  # noqa: E402

GENERATIONS = (75, 90, 100)
# others: for all
NVCC = {"hopper": ["90a"], "copies": ["80", "90"], "textures": ["75"], "matrices": ["80", "90"]}
# as many as there are, or nearly
LEAST = {"nvcc": 7, "thorough nvcc": 20, "NVRTC": 17, "thorough NVRTC": 34, "Clang": 18,
         "thorough Clang": 36, "Triton": 14, "thorough Triton": 28}
NO_PTX = {"asm_refused"}   # of the cases: what its asm says is no instruction
CLANG_FLAGS = ["-S", "-x", "cuda", "--cuda-device-only", "-O2", "-std=c++20", "-w",
               "-Wno-unknown-cuda-version"]


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


class Corpus:
    def __init__(self, toolkit, clang, folder, thorough):
        self.thorough = thorough
        self.toolkit, self.clang, self.folder = pathlib.Path(toolkit), clang, pathlib.Path(folder)
        library = next(path for lib in ("lib64", "lib") for path in (self.toolkit / lib).glob("libnvrtc.so*"))
        self.nvrtc = nvrtc.Nvrtc(library)

    def keep(self, compiler, name, text):
        path = self.folder / f"{compiler}-{name}.ptx"
        path.write_text(text)
        return path

    def by_nvcc(self, source, target):
        path = self.folder / f"nvcc-{source.stem}.{target}.ptx"
        done = run(self.toolkit / "bin" / "nvcc", "-ptx", "-std=c++20", "-O2", "-lineinfo",
                   f"-arch=compute_{target}", source, "-o", path)
        assert done.returncode == 0, f"nvcc refuses {source.name} for {target}: {done.stderr[:600]}"
        return path

    def by_nvrtc(self, case):
        oldest = max(75, case.oldest)
        options = [f"--gpu-architecture=compute_{oldest}", f"-I{self.toolkit}/include",
                   f"-I{self.toolkit}/include/cccl", *case.options]
        try:
            return self.keep("NVRTC", case.path.stem,
                             self.nvrtc.compile(case.path.read_text(), options, case.names, {}))
        except RuntimeError:
            return None   # some cases are wrong, on purpose

    def read_headers(self):
        """What Clang includes before any CUDA source, once: it takes four fifths of its time for a case."""
        empty, headers = self.folder / "empty.h", self.folder / "headers.pch"
        empty.write_text("")
        done = run(*self.clang_command(75), empty, "-Xclang", "-emit-pch", "-o", headers)
        assert done.returncode == 0, done.stderr
        self.headers_read = ["-nogpuinc", "-isystem", self.toolkit / "include",
                             "-Xclang", "-include-pch", "-Xclang", headers]

    def clang_command(self, oldest):
        return [self.clang, *CLANG_FLAGS, f"--cuda-path={self.toolkit}",
                f"--cuda-gpu-arch=sm_{max(75, oldest)}"]

    def by_clang(self, source, options, oldest):
        path = self.folder / f"Clang-{source.stem}.ptx"
        read = self.headers_read if oldest <= 75 else []
        done = run(*self.clang_command(oldest), *read, *options, source, "-o", path)
        return path if done.returncode == 0 else None   # its CUDA is not all of NVIDIA's, either

    def texts(self, pool):
        """compiler -> texts"""
        programs = sorted((HERE / "programs").glob("*.cu")) + sorted(
            (HERE / "persistent" / "programs").glob("*.cu"))
        targets = {source: NVCC.get(source.stem, list(map(str, GENERATIONS))) for source in programs}
        jobs = [(source, target) for number, source in enumerate(programs)
                for target in self.some(targets[source], number)]
        found = {"nvcc": list(pool.map(lambda job: self.by_nvcc(*job), jobs)),
                 "Triton": sorted((HERE / "triton").glob("*.ptx"))[::1 if self.thorough else 2]}
        every = [case for case in cases.all_cases() if "-default-device" not in case.options and
                 case.path.stem not in NO_PTX]
        # those that Clang does not get, where there is one
        step, first = (1, 0) if self.thorough or self.clang == "-" else (2, 1)
        jobs = [case for case in every[first::step] if case.dialect == "nvrtc"]
        found["NVRTC"] = self.without_none("NVRTC", pool.map(self.by_nvrtc, jobs))
        if self.clang != "-":
            self.read_headers()
            jobs = [(case.path, [], case.oldest) for case in every[::1 if self.thorough else 2]]
            jobs.append((programs[-1], [], 75))
            found["Clang"] = self.without_none("Clang", pool.map(lambda job: self.by_clang(*job), jobs))
        return found

    def some(self, every, number):
        return every if self.thorough else [every[number % len(every)]]

    @staticmethod
    def without_none(compiler, paths):
        paths = list(paths)
        print(f"{compiler:<8} refuses {paths.count(None)} of {len(paths)} sources")
        return [path for path in paths if path]


class Judge:
    def __init__(self, printer, program, ptxas, folder, some):
        self.some = some
        self.printer, self.program, self.ptxas, self.folder = printer, program, ptxas, pathlib.Path(folder)
        self.tools = compile_test.Tools(printer, pathlib.Path(ptxas).parent / "nvcc", folder)

    def assembles(self, text, architecture):
        return run(self.ptxas, "-c", f"-arch=sm_{architecture}", text, "-o", os.devnull)

    def other_code(self, text, architectures):
        try:
            for architecture in architectures:
                self.tools.same_code(text, f"sm_{architecture}")
        except RuntimeError as problem:
            return [str(problem)]
        return []

    def examine(self, text, number):
        """What is wrong, for which architectures it assembled, and what became of its kernels."""
        target = re.search(r"^\.target\s+sm_(\w+)", text.read_text(), re.M)[1]
        oldest = int(re.match(r"\d+", target)[0])
        wanted = [target] if target[-1].isalpha() else [each for each in GENERATIONS if each >= oldest]
        printed = run(self.printer, text, self.folder / f"{text.stem}.printed")
        if printed.returncode:
            return [f"{text.name}: {printed.stderr[:600]}"], [], []
        done = run(self.program, text)
        if done.returncode:
            return [f"{text.name}: {done.stderr[:600]}"], [], []
        report = [line[3:] for line in done.stdout.splitlines() if line.startswith("// ")]
        made = self.folder / f"{text.stem}.managed"
        made.write_text(done.stdout)
        changed = re.search(r"^\.version", done.stdout, re.M)
        problems, passed = [], []
        for architecture in self.some(wanted, number):
            if self.assembles(text, architecture).returncode:
                continue
            answer = self.assembles(made if changed else self.folder / f"{text.stem}.printed", architecture)
            if answer.returncode:
                problems.append(f"{text.name}, sm_{architecture}: {answer.stderr[:600]}")
            else:
                passed.append(architecture)
        if text.name.startswith("nvcc-"):
            problems += self.other_code(text, passed)
        if not passed and not problems:
            problems.append(f"{text.name} assembles for none of {wanted} as it is")
        return problems, passed, report


def said(line):
    if ": refused: " in line:
        return "refused: " + line.split(": refused: ")[1]
    return (line if line.startswith("left as") else "one block a worker" if "one block a worker" in line
            else "managed")


def main(printer, program, toolkit, clang, *rest):
    thorough = "--thorough" in rest
    output = next((each for each in rest if each and not each.startswith("-")), None)
    with tempfile.TemporaryDirectory() as temporary, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = pathlib.Path(output or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        corpus = Corpus(toolkit, clang, folder, thorough)
        found = corpus.texts(pool)
        judge = Judge(printer, program, pathlib.Path(toolkit) / "bin" / "ptxas", folder, corpus.some)
        problems, counts, whole = [], collections.Counter(), 0
        for compiler, texts in found.items():
            good = collections.Counter()
            for text, (wrong, passed, report) in zip(texts,
                                                     pool.map(judge.examine, texts, range(len(texts)))):
                problems += wrong
                good.update(["all"] if passed and not wrong else [])
                good.update(passed)
                counts.update(map(said, report))
            whole += good["all"]
            print(f"{compiler:<8} {len(texts)} texts, {good['all']} right;",
                  ", ".join(f"{good[each]} for sm_{each}" for each in sorted(set(good) - {"all"}, key=str)))
            least = LEAST.get(f"thorough {compiler}", LEAST[compiler]) if thorough else LEAST[compiler]
            if good["all"] < least:
                problems.append(f"{compiler}: {good['all']} texts, {least} are wanted")
        if clang == "-":
            print("Clang    is not on this machine")
    for what, count in counts.most_common():
        print(f"{count:6} kernels {what}")
    print("\n".join(problems) or f"{whole} texts")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
