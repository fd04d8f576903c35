#!/usr/bin/env python3
"""What `smt index --show` makes of the cases, against their golden files, and that NVRTC takes it:

golden_test.py SMT_INDEX TOOLKIT [--update]

The first line of a case has the compiler's options.
"""
import concurrent.futures
import difflib
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "source"))
import nvrtc  # noqa: E402

FOLDER = pathlib.Path(__file__).parent / "cases"


def extract(program, case):
    options = case.read_text().splitlines()[0].removeprefix("//!").split()
    command = [pathlib.Path(program).resolve(), "--show", case.name, "--", "-std=c++17",
               "-arch=compute_90", *options]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=120)
    return f"// {done.stderr.strip()}\n" if done.returncode else done.stdout


def refusal(compiler, toolkit, text):
    options = ["--gpu-architecture=compute_90", "--std=c++17", "--device-as-default-execution-space",
               f"-I{toolkit}/include",
               f"-I{toolkit}/include/cccl"]
    try:
        compiler.compile(text, options, [], {})
        return ""
    except RuntimeError as problem:
        return str(problem)


def main(program, toolkit, update=False):
    cases = sorted(FOLDER.glob("*.cu"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(lambda case: extract(program, case), cases))
    compiler = nvrtc.Nvrtc(next((pathlib.Path(toolkit) / "lib64").glob("libnvrtc.so*")))
    wrong = 0
    for case, text in zip(cases, texts):
        golden = case.with_suffix(".golden")
        if update:
            golden.write_text(text)
        expected = golden.read_text() if golden.exists() else ""
        problem = "" if text.startswith("// smt index:") else refusal(compiler, toolkit, text)
        if text == expected and not problem:
            continue
        wrong += 1
        sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), text.splitlines(True),
                                                   str(golden), "found"))
        print(problem)
    print(f"{len(cases)} cases, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], "--update" in sys.argv[3:]))
