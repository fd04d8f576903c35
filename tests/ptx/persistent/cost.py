#!/usr/bin/env python3
"""Registers and local memory of managed forms beside the kernels' own: cost.py SMT MANAGED_FORM TOOLKIT sm_N
PROGRAM...

In the source form if the index (SMT_CACHE_DIR) knows the program, else in that by PTX. A row for each kernel:
its own as in the program's machine code, and its managed form's, as ptxas makes it of what would be loaded
(-v), or as NVRTC did. Local memory is the stack frame, what is spilled included. Prints a Markdown table.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

FUNCTION = re.compile(r"Function properties for (\S+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, "
                      r"(\d+) bytes spill loads")
USED = re.compile(r"Compiling entry function '(\S+)' for.*?Used (\d+) registers", re.S)


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def facts(text):
    """symbol -> (registers, stack frame)"""
    frames = {name: int(frame) for name, frame, *_ in FUNCTION.findall(text)}
    return {name: (int(count), frames.get(name, 0)) for name, count in USED.findall(text)}


def of_machine_code(smt, architecture, file):
    listed = json.loads(run(smt, "inspect", file, "--arch", architecture, "--json")[0])
    return {kernel["name"]: (kernel["registers"], kernel["local"]) for kernel in listed["kernels"]}


def of_image(smt, toolkit, architecture, image, folder):
    if image.read_bytes().startswith(b"\x7fELF"):   # NVRTC's machine code
        return of_machine_code(smt, architecture, image)
    return facts(
        run(toolkit / "bin" / "ptxas", "-v", f"-arch={architecture}", image, "-o", folder / "cubin")[1])


def main(smt, program, toolkit, architecture, *files):
    toolkit, total = pathlib.Path(toolkit), []
    print("| program | kernel | form | registers own | managed | local memory own, bytes | managed |\n"
          "|---|---|---|---|---|---|---|")
    for file in map(pathlib.Path, files):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            lines = [line.split() for line in run(program, file, architecture, folder)[0].splitlines()]
            owns = of_machine_code(smt, architecture, file)
            known = {number: of_image(smt, toolkit, architecture, folder / f"{number}.image", folder)
                     for number in {line[0] for line in lines}}
        for number, form, symbol, managed in lines:
            own, made = owns.get(symbol), known[number].get(managed)
            if not own or not made:
                print(f"| {file.name} | `{symbol}` | {form} | not in its image | | | |")
                continue
            total.append((own, made))
            print(f"| {file.name} | `{symbol}` | {form} | {own[0]} | {made[0]} | {own[1]} | {made[1]} |")
    more = sum(made[0] > own[0] for own, made in total)
    step = sum(-(-made[0] // 8) > max(4, -(-own[0] // 8)) for own, made in total)
    local = [made[1] - own[1] for own, made in total if made[1] > own[1]]
    print(f"\n{len(total)} kernels: {more} have more registers than their own form, {step} a step of eight "
          f"more; {len(local)} more local memory"
          + (f", {max(local)} bytes at most" if local else ""))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
