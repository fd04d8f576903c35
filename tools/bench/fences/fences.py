#!/usr/bin/env python3
"""What fences cost (`cost`), that they hold (`contain`), and what an assembler makes of them (`code`). See
README.md. One JSON line a run in fences.jsonl; a table at the end. Exit code 0 when every result was right.

    fences.py cost|contain|code [--build build] [--programs build/examples/static] [--list FILE] [--out .]

cost is of the examples, or with --list of other programs (Listed in programs.py).
"""
import argparse
import contextlib
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1] / "harness"), str(HERE.parents[3] / "tests" / "simulated")]
from harness import Child, Lines, Places, Runtime, base_environment, tail  # noqa: E402
from programs import Examples, Listed  # noqa: E402

MODES = {"native": None, "shared": {}, "fence": {"SMT_ISOLATION": "fence"}}


def run(kind, path, mode, runtime, options):
    environment = base_environment()
    if runtime:
        environment.update(runtime.variables(SMT_PROFILES="none", SMT_DEVICE=options.device, **MODES[mode]))
        if options.device == "sim":   # its runtime, as `smt run` has it
            environment["LD_LIBRARY_PATH"] = os.path.join(options.build, "lib", "cudart")
    done = Child(kind.command(path), environment, runtime.places.preload if runtime else None, 60).finish()
    found = kind.result(path, done) if done["rc"] == 0 else None
    ms = kind.milliseconds(path, done)
    right = found is not None and found == kind.wanted(path, found)
    return done, ms, right and ms is not None


def cost(options, lines):
    kind, found, wrong = Listed(options) if options.list else Examples(options), {}, 0
    programs = kind.programs()
    end = time.monotonic() + options.budget
    modes = [mode for mode in MODES if mode != "native" or options.device == "gpu"]
    with contextlib.ExitStack() as stack:
        runtimes = {mode: stack.enter_context(Runtime(Places(options.build), SMT_POLICY="fifo"))
                    for mode in modes if mode != "native"}
        for turn in range(options.rounds + 1):   # the first one compiles forms
            for path in programs:
                if time.monotonic() > end:
                    print(f"the budget of {options.budget} s is over in round {turn}")
                    return show_cost(found, wrong, kind, programs)
                for mode in modes[turn % len(modes):] + modes[:turn % len(modes)]:
                    done, ms, ok = run(kind, path, mode, runtimes.get(mode), options)
                    wrong += not ok
                    if not ok:
                        print(f"{path.name} {mode}: exit code {done['rc']}, prints:\n"
                              f"{tail(done['out'], 400)}{tail(done['err'], 400)}", flush=True)
                    lines.add(part="cost", program=path.name, mode=mode, round=turn, ok=ok, kernels_ms=ms,
                              clock=kind.clock(path), seconds=done["seconds"])
                    if turn and ok:
                        found.setdefault((path.name, mode), {})[turn] = ms
    return show_cost(found, wrong, kind, programs)


def ratios(found, name, mode, base):
    pairs = [(found.get((name, mode), {}).get(turn), ms) for turn, ms in found.get((name, base), {}).items()]
    return [ms / other for ms, other in pairs if ms and other]


def show_cost(found, wrong, kind, programs):
    clocks = {path.name: kind.clock(path) for path in programs}
    columns = (("shared", "native"), ("fence", "native"), ("fence", "shared"))
    means = {column: [] for column in columns}
    print(f"{'program':<22}" + "".join(f"{mode + '/' + base:>26}" for mode, base in columns))
    for name in sorted({name for name, _ in found}):
        cells = ""
        for column in columns:
            all_ = ratios(found, name, *column)
            if all_:
                means[column].append(statistics.median(all_))
            cells += (f"{statistics.median(all_):>12.3f} ({min(all_):.3f}..{max(all_):.3f})"
                      if all_ else f"{'-':>26}")
        print(f"{name:<22}{cells}  {clocks[name]}")
    for (mode, base), values in means.items():
        if values:
            mean = math.exp(sum(map(math.log, values)) / len(values))
            print(f"{mode}/{base}: geometric mean {mean:.3f}, largest {max(values):.3f}, "
                  f"{len(values)} programs")
    print(f"{wrong} wrong results")
    return wrong or not found


def contain(options, lines):
    """The list is the simulated device's; what its twins need (one context) is the GPU's own way."""
    from fences import FAULTS, FENCE, WELL   # noqa: PLC0415  tests/simulated
    from strict import Apart, goes_on        # noqa: PLC0415
    from takeover import say                 # noqa: PLC0415
    wrong = 0
    with Apart(os.path.join(options.build, "bin", "smt"), os.path.join(options.build, "bin")) as place:
        place.environment.update(SMT_DEVICE=options.device, SMT_COMPILE=options.compile)
        neighbour = place.survivor("neighbour", options=())
        (before, ) = [server["pid"] for server in place.servers().values()]

        def one(kernel, where, expected):
            done = subprocess.run([place.smt, "run", "--tenant", "tried", *FENCE, "--",
                                   place.programs / "sim_fenced", kernel, where], env=place.environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
            say(neighbour, f"{kernel}.{where}")
            ok = done.returncode == 0 and expected in done.stdout.splitlines()
            lines.add(part="contain", kernel=kernel, where=where, ok=ok, output=done.stdout[-400:])
            print(f"{'right' if ok else 'WRONG':<6} {kernel} {where}: {expected}"
                  + ("" if ok else f", not\n{done.stdout}"), flush=True)
            return not ok

        for kernel, where, error, _ in FAULTS:
            wrong += one(kernel, where, error)
        for kernel in WELL:
            if kernel != "before":
                wrong += one(kernel, "own", "256") + one(kernel, "pinned", "256")
        same = [server["pid"] for server in place.servers().values()] == [before]
        wrong += not same
        print("right  one server, and the neighbour's sums" if same else "WRONG  another server")
        goes_on(neighbour)
    print(f"{wrong} wrong")
    return wrong


def assembled(ptxas, text, architecture):
    """By kernel: registers, spilled bytes, bytes of code. A text: why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = os.path.join(folder, "a.ptx"), os.path.join(folder, "a.cubin")
        pathlib.Path(source).write_text(text)
        done = subprocess.run([ptxas, "-v", f"-arch={architecture}", source, "-o", cubin],
                              capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        sections = subprocess.run(["readelf", "-SW", cubin], capture_output=True, text=True).stdout
    code_bytes = {name: int(size, 16)
                  for name, size in re.findall(r"\.text\.(\S+)\s+PROGBITS\s+\S+ \S+ (\S+)", sections)}
    facts, name = {}, None
    for line in done.stderr.splitlines():
        if found := re.search(r"Compiling entry function '(\S+)'", line):
            name = found[1]
            facts[name] = {"spilled": 0, "registers": 0, "bytes": code_bytes.get(name, 0)}
        elif name and (found := re.search(r"(\d+) bytes spill stores", line)):
            facts[name]["spilled"] = max(facts[name]["spilled"], int(found[1]))
        elif name and (found := re.search(r"Used (\d+) registers", line)):
            facts[name]["registers"] = int(found[1])
            name = None
    return facts


def code(options, lines):
    folder = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin"
    wrong, grown, sums = 0, [], [0, 0]
    print(f"{'kernel':<44} {'registers':>14} {'spilled':>12} {'bytes':>16} {'ratio':>6}")
    for source in sorted(pathlib.Path(options.sources).glob("*.cu")):
        if options.only and source.stem not in options.only.split(","):
            continue
        with tempfile.TemporaryDirectory() as place:
            file = os.path.join(place, "a.ptx")
            done = subprocess.run([str(folder / "nvcc"), "-std=c++20", "-O3", "-ptx", "-arch=compute_90",
                                   f"-I{HERE.parents[3]}", "-o", file, str(source)],
                                  capture_output=True, text=True)
            fenced = subprocess.run([options.ptx_fence, file], capture_output=True, text=True)
            text = pathlib.Path(file).read_text() if done.returncode == 0 else ""
        before = assembled(str(folder / "ptxas"), text, "sm_90") if text else done.stderr
        after = assembled(str(folder / "ptxas"), fenced.stdout, "sm_90")
        if isinstance(before, str) or isinstance(after, str):
            wrong += 1
            print(f"{source.stem}: {before if isinstance(before, str) else after}")
            continue
        refused = dict(re.findall(r"^// (\S+): refused: (.*)$", fenced.stdout, re.M))
        for name, reason in refused.items():
            print(f"{source.stem} {name}: refused: {reason}")
        counted = re.search(r"^// (\d+) accesses, (\d+) checks", fenced.stdout, re.M)
        sums = [old + int(new) for old, new in zip(sums, counted.groups())]
        for name, old in before.items():
            new = after.get(name)
            if not new or name in refused:
                continue
            ratio = new["bytes"] / max(1, old["bytes"])
            grown.append(ratio)
            lines.add(part="code", program=source.stem, kernel=name, before=old, after=new)
            print(f"{(source.stem + ' ' + name)[:44]:<44} {old['registers']:>6} {new['registers']:>7} "
                  f"{old['spilled']:>5} {new['spilled']:>6} {old['bytes']:>7} {new['bytes']:>8} "
                  f"{ratio:>6.2f}", flush=True)
    if grown:
        mean = math.exp(sum(map(math.log, grown)) / len(grown))
        print(f"bytes of code: geometric mean of {len(grown)} kernels {mean:.2f}; {sums[1]} checks for "
              f"{sums[0]} accesses")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("cost", "contain", "code"))
    parser.add_argument("--build", default="build")
    parser.add_argument("--programs", default="build/examples/static")
    parser.add_argument("--list", help="of cost: the file that says how to run programs that are no examples")
    parser.add_argument("--sources", default="examples", help="of code")
    parser.add_argument("--ptx-fence", default="build/bin/ptx_fence")
    parser.add_argument("--checksums", default="examples/checksums.txt")
    parser.add_argument("--device", default="gpu", choices=("gpu", "sim"))
    parser.add_argument("--size", default="small")
    parser.add_argument("--only", default="", help="names of programs, with commas between them")
    parser.add_argument("--compile", default="ptx=0", help="SMT_COMPILE of contain")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=400, help="seconds, of cost")
    parser.add_argument("--out", default=".")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    lines = Lines(os.path.join(options.out, "fences.jsonl"))
    return 1 if {"cost": cost, "contain": contain, "code": code}[options.part](options, lines) else 0


if __name__ == "__main__":
    sys.exit(main())
