#!/usr/bin/env python3
"""PTX that compilers made, turned into persistent form and assembled: sweep.py PTX_PERSIST NVCC OUTPUT
SOURCE.cu|FILE.ptx...

Sources are compiled for sm_75, sm_90a and sm_100a, as far as they are meant for it. What comes out of
ptx_persist, which itself checks that it parses to what it prints, must assemble for every later architecture
for which what went in does. Prints a line for each text, and why kernels were refused.
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

COMPILED_FOR = ("75", "90a", "100a")
ASSEMBLED_FOR = ("75", "90", "100", "90a", "100a")


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def texts_of(nvcc, output, source):
    if source.suffix == ".ptx":
        return [source]
    texts = []
    for architecture in COMPILED_FOR:
        path = output / f"{source.parent.name}_{source.stem}.{architecture}.ptx"
        done = run(nvcc, "-ptx", "-std=c++20", "-O2", "-lineinfo", f"-arch=compute_{architecture}",
                   source, "-o", path)
        if done.returncode == 0:
            texts.append(path)
    return texts


def examine(program, ptxas, output, text):
    made = output / f"{text.stem}.managed.ptx"
    done = run(program, text)
    report = [line[3:] for line in done.stdout.splitlines() if line.startswith("// ")]
    if done.returncode:
        return text, report, [], f"ptx_persist: {done.returncode} {done.stderr}"
    made.write_text(done.stdout)
    passed, problem = [], ""
    if re.search(r"^\.version", done.stdout, re.MULTILINE):
        for architecture in ASSEMBLED_FOR:
            if run(ptxas, "-c", f"-arch=sm_{architecture}", text, "-o", os.devnull).returncode:
                continue
            assembled = run(ptxas, "-c", f"-arch=sm_{architecture}", made, "-o", os.devnull)
            if assembled.returncode:
                problem += f"sm_{architecture}: {assembled.stderr[:300]}"
            else:
                passed.append(architecture)
    return text, report, passed, problem


def main(program, nvcc, output, *sources):
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    ptxas = pathlib.Path(nvcc).parent / "ptxas"
    reasons, wrong, assembled = collections.Counter(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = [text
                 for found in pool.map(lambda source: texts_of(nvcc, output, pathlib.Path(source)), sources)
                 for text in found]
        for text, report, passed, problem in pool.map(lambda text: examine(program,
                                                                           ptxas, output, text), texts):
            kernels = [line for line in report if ": " in line and not line.startswith("left as")]
            for line in report:
                if ": refused: " in line:
                    reasons["refused: " + line.split(": refused: ")[1]] += 1
                elif "one block a worker: " in line:
                    reasons["one block a worker: " + re.sub(r" \(in .*", "",
                                                            line.split("one block a worker: ")[1])] += 1
                elif line.startswith("left as"):
                    reasons[line] += 1
                else:
                    reasons["managed"] += 1
            assembled += len(passed)
            wrong += bool(problem)
            print(f"{text.name}: {len(kernels)} kernels, assembled for "
                  f"{' '.join(passed) or 'nothing'}{'; WRONG: ' + problem if problem else ''}")
    for reason, count in reasons.most_common():
        print(f"{count:6} {reason}")
    print(f"{len(texts)} texts, {assembled} assembled, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
