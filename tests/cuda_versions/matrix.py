#!/usr/bin/env python3
"""Programs of older CUDA compilers against those of today's: matrix.py build|check BUILD NVCC [VERSION ...]

build  compiles the examples and tests/gpu/programs with each compiler that toolkits.py laid out in
       BUILD/cuda-versions and with NVCC, with both runtimes, into
       BUILD/cuda-versions/programs/VERSION-RUNTIME
check  the same, and then, without a GPU:
       images      `smt inspect` finds the same kernels in a program as in that of NVCC, as many managed
       doors       `smt inspect --door` gives as many kernels of machine code a door
       programs    those with the shared runtime print on the simulated device what they print on an H200
       NVRTC       of the PTX that the version's NVRTC makes of the source rewriter's cases as much is managed
       driver      libsmt.so has every driver function that the version's runtime looks up

It prints a table, and each difference by name. Exit code 1: there is one.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "tests/rewrite/source")]
import cases  # noqa: E402
import nvrtc  # noqa: E402

TODAY = "today"
RUNTIMES = {"11.8": "libcudart.so.11.0", "12.4": "libcudart.so.12", "12.8": "libcudart.so.12",
            "12.9": "libcudart.so.12", TODAY: "libcudart.so.13"}
FLAGS = ["-std=c++17", "-O2", "-gencode", "arch=compute_90,code=[sm_90,compute_90]"]
OF_EXAMPLES = ["-fmad=false", "-Xcompiler", "-ffp-contract=off"]   # as examples/CMakeLists.txt has it
# They need libraries or headers of CUDA 13, or fault on purpose.
LEFT_OUT = {"cublas_sgemm", "driver_api", "waits_in_graphs", "fault_client", "device_facts"}
SIMULATED = ["vector_add", "matmul_tiled", "symbols", "big_params", "histogram_atomics",
             "default_stream_order", "stream_pipeline", "memory_kinds", "managed", "managed_attach",
             "async_pool", "graph_capture", "threads", "device_printf", "errors", "managed_symbol",
             "fork_child", "shared_memory~", "reduction~", "occupancy~", "cooperative~"]
# What uses functions that a compiler's headers do not have yet.
NOT_BUILT = {"11.8": {"big_params", "clusters", "graph_capture", "graph_changes", "graph_stops", "managed"},
             "12.4": {"big_params"}}
PATIENCE = 900


def run(*words, check=True, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE,
                          **options)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n"
                           f"{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done


class Matrix:
    def __init__(self, options):
        self.build = options.build.resolve()
        self.folder = self.build / "cuda-versions"
        self.nvcc = {version: self.folder / f"cuda-{version}/bin/nvcc" for version in options.versions}
        self.nvcc[TODAY] = options.nvcc
        self.smt = self.build / "bin/smt"
        self.differences = []
        self.table = collections.defaultdict(dict)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SMT_")}
        self.environment.update(SMT_CACHE_DIR=str(self.folder / "cache"), SMT_PROFILES="none")

    def sources(self, version):
        found = {path.stem: path for folder in ("examples", "tests/gpu/programs")
                 for path in sorted((ROOT / folder).glob("*.cu")) if path.stem not in LEFT_OUT}
        return {name: path for name, path in found.items() if name not in NOT_BUILT.get(version, set())}

    def place(self, version, runtime):
        return self.folder / "programs" / f"{version}-{runtime}"

    def toolkit(self, version):
        return pathlib.Path(self.nvcc[version]).resolve().parent.parent

    def kinds(self, version):
        has_static = any((self.toolkit(version) / folder / "libcudart_static.a").exists()
                         for folder in ("lib64", "lib"))
        return ["shared", "static"] if has_static else ["shared"]

    def compile_one(self, item):
        version, name, source = item
        newest = max(path.stat().st_mtime for path in [source, *source.parent.glob("*.h")])
        outputs = {kind: self.place(version, kind) / name for kind in self.kinds(version)}
        if all(path.exists() and path.stat().st_mtime > newest for path in outputs.values()):
            return
        # The environment's own include path would come before the toolkit's.
        environment = {k: v for k, v in os.environ.items() if k not in ("CPATH", "NVCC_PREPEND_FLAGS")}
        environment["PATH"] = "/usr/bin:/bin"
        with tempfile.TemporaryDirectory() as scratch:
            begin = [self.nvcc[version], *FLAGS, *(OF_EXAMPLES if source.parent.name == "examples" else [])]
            if version == "11.8":   # its newest host compiler is g++ 11; that of Debian 12 does as well
                begin.append("-allow-unsupported-compiler")
            run(*begin, "-c", source, "-o", f"{scratch}/object.o", env=environment)
            for kind, output in outputs.items():
                output.parent.mkdir(parents=True, exist_ok=True)
                run(*begin, "-cudart", kind, f"{scratch}/object.o", "-o", f"{scratch}/{kind}", "-lpthread",
                    "-ldl", "-Xlinker", "-rpath=$ORIGIN/../lib", env=environment)
                run("strip", f"{scratch}/{kind}")
                shutil.move(f"{scratch}/{kind}", output)

    def compile(self):
        libraries = self.folder / "programs/lib"
        libraries.mkdir(parents=True, exist_ok=True)
        for version in self.nvcc:
            library, = list((self.toolkit(version) / "lib64").glob(RUNTIMES[version]))
            shutil.copy(library, libraries / RUNTIMES[version])
        items = [(version, name, source) for version in self.nvcc
                 for name, source in self.sources(version).items()]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for item, problem in zip(items, pool.map(self.attempt, items)):
                if problem:
                    self.differ(item[0], f"{item[1]} is not built: {problem}")
        for version in self.nvcc:
            self.table[version]["built"] = " ".join(
                f"{kind} {len(list(self.place(version, kind).iterdir()))}" for kind in self.kinds(version))

    def attempt(self, item):
        try:
            self.compile_one(item)
            return ""
        except RuntimeError as error:
            return str(error)

    def differ(self, version, text):
        self.differences.append(f"{version}: {text}")

    # ---- what is in the programs

    def inspected(self, path):
        kernels = json.loads(run(self.smt, "inspect", path, "--json", "--arch", "sm_90",
                                 env=self.environment).stdout)["kernels"]
        doors = json.loads(run(self.smt, "inspect", path, "--json", "--door", "--arch", "sm_90",
                               env=self.environment).stdout)["door"][0]
        return (sorted((kernel["demangled"], kernel["management"]) for kernel in kernels),
                (doors["patched"], doors["kernels"], doors["kernels_left_alone"]))

    def images(self):
        found = {}
        for version in self.nvcc:
            paths = sorted(self.place(version, "shared").iterdir())
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                found[version] = dict(zip([path.name for path in paths], pool.map(self.inspected, paths)))
            kernels = [kernel for listed, _ in found[version].values() for kernel in listed]
            managed = sum(how.startswith("managed") for _, how in kernels)
            self.table[version]["managed"] = f"{managed} of {len(kernels)}"
            doors = [door for _, door in found[version].values()]
            self.table[version]["doors"] = f"{sum(d[0] for d in doors)} of {sum(d[1] for d in doors)}"
        for version in self.nvcc:
            for name, (kernels, doors) in found[version].items():
                today_kernels, today_doors = found[TODAY][name]
                if kernels != today_kernels:
                    self.differ(version, f"{name}: kernels {sorted(set(kernels) ^ set(today_kernels))}")
                if doors != today_doors:
                    self.differ(version, f"{name}: doors {doors}, today {today_doors}")

    # ---- on the simulated device

    def programs(self):
        for version in self.nvcc:
            built = self.place(version, "shared")
            wanted = [name for name in SIMULATED if (built / name.rstrip("~")).exists()]
            done = run(sys.executable, ROOT / "tests/cudart/programs_test.py", self.smt, built,
                       ROOT / "tests/cudart/checksums.txt", *wanted, check=False, env=self.environment)
            right = len(re.findall("^right ", done.stdout, re.M))
            examples = [path for path in sorted(built.iterdir())
                        if (ROOT / "examples" / f"{path.name}.cu").exists()
                        and path.name not in ("vector_add",)]
            for path in examples:
                right += self.example(version, path)
            self.table[version]["simulated"] = f"{right} of {len(wanted) + len(examples)}"
            for line in re.findall("^WRONG .*$", done.stdout, re.M):
                self.differ(version, f"simulated: {line}")

    def example(self, version, path):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**self.environment, "SMT_RUNTIME_DIR": folder}
            done = run(sys.executable, ROOT / "tests/examples/check.py", self.smt,
                       ROOT / "examples/checksums.txt", path, check=False, env=environment)
            run(self.smt, "server", "stop", check=False, env=environment)
        if done.returncode:
            self.differ(version, f"simulated: {path.name}: {done.stdout[-500:]}{done.stderr[-500:]}")
        return done.returncode == 0

    # ---- NVRTC's PTX

    def nvrtc(self):
        found = {}
        for version in self.nvcc:
            folder = self.toolkit(version) / "lib64"
            library = next((path for path in sorted(folder.glob("libnvrtc.so.*"))), None)
            if library is None:
                self.table[version]["NVRTC"] = "none here"
                continue
            found[version] = self.texts(version, library)
            managed = sum(how.startswith("managed") for kernels in found[version].values()
                          for _, how in kernels)
            self.table[version]["NVRTC"] = \
                f"{managed} of {sum(len(kernels) for kernels in found[version].values())}"
        for version, texts in found.items():
            for name, kernels in texts.items():
                today = found.get(TODAY, {}).get(name, kernels)
                if kernels != today:
                    self.differ(version, f"NVRTC, {name}: {sorted(set(kernels) ^ set(today))}")

    def texts(self, version, library):
        with tempfile.TemporaryDirectory() as folder:
            script = [sys.executable, "-B", pathlib.Path(__file__), "nvrtc", library, folder]
            run(*script)   # each library in a process of its own
            return {path.stem: [(kernel["demangled"], kernel["management"]) for kernel in
                                json.loads(run(self.smt, "inspect", path, "--json", "--arch", "sm_90",
                                               env=self.environment).stdout)["kernels"]]
                    for path in sorted(pathlib.Path(folder).glob("*.ptx"))}

    # ---- the driver's functions

    def driver(self):
        dynamic = run("nm", "-D", "--defined-only", self.build / "lib/libsmt.so").stdout
        exported = set(re.findall(r" T (\w+)", dynamic))
        for version in self.nvcc:
            library = self.toolkit(version) / "lib64" / RUNTIMES[version]
            names = {name.decode() for name in
                     re.findall(rb"\0(cu[A-Z]\w+)(?=\0)", library.read_bytes())}
            self.table[version]["driver"] = f"{len(names & exported)} of {len(names)}"
            if names - exported:
                self.differ(version, f"libsmt.so lacks {' '.join(sorted(names - exported))}")

    def print(self):
        columns = ["built", "managed", "doors", "simulated", "NVRTC", "driver"]
        print(f"{'':<8}" + "".join(f"{column:<22}" for column in columns))
        for version in self.nvcc:
            print(f"{version:<8}" + "".join(f"{self.table[version].get(c, '-'):<22}" for c in columns))
        print("\n".join(self.differences) or "no differences")
        return 1 if self.differences else 0


def make_texts(library, folder):
    """The cases that this NVRTC takes, as PTX."""
    compiler = nvrtc.Nvrtc(library)
    for case in cases.all_cases():
        if case.dialect != "nvrtc":
            continue
        try:
            text = compiler.compile(case.path.read_text(), ["--gpu-architecture=compute_90", *case.options],
                                    case.names, {})
        except RuntimeError:
            continue
        (pathlib.Path(folder) / f"{case.path.stem}.ptx").write_text(text)


def main():
    if sys.argv[1:2] == ["nvrtc"]:
        return make_texts(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["build", "check"])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("nvcc", type=pathlib.Path)
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    options = parser.parse_args()
    options.versions = options.versions or [version for version in RUNTIMES if version != TODAY]
    for version in options.versions:
        if not (options.build / f"cuda-versions/cuda-{version}/finished").exists():
            parser.error(f"no {options.build}/cuda-versions/cuda-{version}: "
                         "run tests/cuda_versions/toolkits.py")
    matrix = Matrix(options)
    matrix.compile()
    if options.what == "check":
        for step in (matrix.driver, matrix.images, matrix.nvrtc, matrix.programs):
            step()
    return matrix.print()


if __name__ == "__main__":
    sys.exit(main())
