#!/usr/bin/env python3
"""More than a hundred damaged images, each loaded by a program under smt on the simulated device.

    damaged_test.py SMT LOAD CORPORA

Each must give a documented error, in every way to load it; the server must be the same process at the end,
and run a good kernel after each. smt inspect must say something of each file, and not crash.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import damage  # noqa: E402

PATIENCE = 150
LINKER_ERRORS = {"CUDA_ERROR_INVALID_VALUE"}   # for no bytes at all


def server_log(folder):
    return "".join(path.read_text() for path in pathlib.Path(folder).glob("*.log"))


def load_all(smt, program, good, paths, folder):
    done = subprocess.run([smt, "run", "--tenant", "damaged", "--", program, good],
                          capture_output=True, text=True,
                          timeout=PATIENCE, input="".join(f"{path}\n" for path in paths))
    assert done.returncode == 0, \
        f"after {done.stdout.count(chr(10))} of {len(paths)} images: exit code {done.returncode}\n" \
        f"{done.stderr}\n{server_log(folder)[-2000:]}"
    return [line.split() for line in done.stdout.splitlines()]


def judge(cases, results):
    problems = []
    for case, (module, library, memory, linker) in zip(cases, results):
        if module not in case.errors:
            problems.append(f"{case.name}: {module}, not {' or '.join(sorted(case.errors))}")
        if library != module and not (case.name.startswith("corpus") and library in case.errors):
            problems.append(f"{case.name}: {module} as a module, {library} as a library")
        # In memory an image's end is known by its headers only, and zeros stand behind it: what leads
        # out of a file may be sound there, and a cubin then is one that the device has no use for.
        errors = case.errors | ({damage.NO_BINARY} if case.name.startswith("cubin") else set())
        if "the first" not in case.name and memory not in errors:
            problems.append(f"{case.name}: from memory {memory}, not {' or '.join(sorted(errors))}")
        if linker not in case.errors | LINKER_ERRORS:
            problems.append(f"{case.name}: through the linker {linker}, not "
                            f"{' or '.join(sorted(case.errors))}")
    return problems


def inspect(smt, case, path):
    for option in [["--arch", "sm_90"], ["--json"]]:
        done = subprocess.run([smt, "inspect", path, *option], capture_output=True, timeout=PATIENCE)
        if done.returncode not in (0, 1) or (done.returncode == 1) != bool(done.stderr):
            return [f"smt inspect of {case.name}: exit code {done.returncode}\n{done.stderr.decode()}"]
        if option == ["--json"] and done.stdout:
            json.loads(done.stdout)
    return []


def main(smt, program, corpora):
    corpus = pathlib.Path(corpora) / "fatbin"
    cases = list(damage.cases(pathlib.Path(corpora)))
    assert len(cases) >= 300 and len({case.bytes for case in cases}) > 0.95 * len(cases), len(cases)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as images:
        os.environ.update(SMT_RUNTIME_DIR=folder, SMT_CACHE_DIR=f"{folder}/cache", SMT_DEVICE="sim",
                          SMT_REAL_DRIVER="none")
        paths = []
        for number, case in enumerate(cases):
            paths.append(pathlib.Path(images) / str(number))
            paths[-1].write_bytes(case.bytes)
        try:
            results = load_all(smt, program, corpus / "zstd", paths, folder)
            again = load_all(smt, program, corpus / "lz4", paths[:1], folder)
        finally:
            subprocess.run([smt, "server", "stop"], timeout=PATIENCE)
        problems = judge(cases, results)
        for case, path in zip(cases, paths):
            problems += inspect(smt, case, path)
        log = server_log(folder)
        assert len(set(re.findall(r"smtd\[(\d+)\]", log))) == 1, "the server was started again:\n" + log
        assert not re.search(r"Sanitizer|runtime error:", log), log
        assert len(results) == len(cases) and len(again) == 1
    counts = {}
    for error, *_ in results:
        counts[error] = counts.get(error, 0) + 1
    print("\n".join(problems) or f"{len(cases)} damaged images, each in 4 ways: {counts}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
