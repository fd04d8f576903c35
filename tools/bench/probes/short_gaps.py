#!/usr/bin/env python3
"""Are the gaps between kernels shorter once another context was made than once graphs were instantiated?

    tools/bench/probes/short_gaps.py [--build BUILD] > rows.jsonl

Needs a GPU and PyTorch. A JSON row for each moment: us a kernel of a graph of 1,000 additions, one behind
the other, and ms of GPT-2's passes for 16 tokens, each the median of 30 and the longest, by the GPU's
timer. Moments: at the begin, behind the instantiation of GPT-2's graphs (some thousand nodes), behind a
context that another process has made, behind that once more. Natively, and with a build under smt, where
the server makes that context by itself (short_gaps in SMT_LIMITS), also with short_gaps=0. `watched`: the
longest of all graphs that ran meanwhile.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KERNELS, ROUNDS = 1000, 30
SOON = 8   # seconds, within which the server makes its context
CONTEXT = """
import ctypes
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
"""


def measure_here(mode):
    sys.path.insert(0, str(HERE.parents[0] / "colocate"))
    import torch
    import programs
    programs.prepare("cuda")
    values = torch.zeros(1024, device="cuda")
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        values.add_(1)
        side.synchronize()
        with torch.cuda.graph(graph, stream=side):
            for _ in range(KERNELS):
                values.add_(1)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def timed(work):
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def row(moment, **more):
        additions = sorted(timed(graph.replay) for _ in range(ROUNDS))
        found = {"mode": mode, "moment": moment, "addition_us": additions[ROUNDS // 2],
                 "addition_most_us": additions[-1]}
        if made:
            passes = sorted(timed(made[-1].forward) for _ in range(ROUNDS))
            found.update(gpt2_ms=passes[ROUNDS // 2], gpt2_most_ms=passes[-1])
        print(json.dumps({**found, **more}), flush=True)

    def another_context():
        if mode == "native":
            subprocess.run([sys.executable, "-c", CONTEXT], check=True)
            return {}
        times, until = [], time.monotonic() + SOON
        while time.monotonic() < until:
            times.append(timed(graph.replay))
        return {"watched_most_us": max(times), "watched": len(times)}

    def graphs():
        service = programs.make("gpt2-graph", "cuda")
        service.warm()
        made.append(service)

    made = []
    row("begin")
    graphs()
    row("graphs")
    row("another context", **another_context())
    graphs()
    row("graphs again")
    row("another context again", **another_context())


def under_smt(build, mode, **limits):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "SMT_RUNTIME_DIR": folder, "SMT_POLICY": "fifo", "SMT_IDLE_SECONDS": "1",
                       "SMT_LIMITS": ",".join(f"{name}={value}" for name, value in limits.items())}
        done = subprocess.run([sys.executable, __file__, "--here", mode],
                              env={**environment, "LD_PRELOAD": os.path.join(build, "lib", "libsmt.so")})
        subprocess.run([os.path.join(build, "bin", "smt"), "server", "stop"], env=environment,
                       stdout=subprocess.DEVNULL)
        return done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", help="of smt; without it natively alone")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        measure_here(options.here)
        return 0
    failed = subprocess.run([sys.executable, __file__, "--here", "native"]).returncode
    if options.build:
        build = os.path.abspath(options.build)
        failed |= under_smt(build, "smt, short_gaps=0", short_gaps=0)
        failed |= under_smt(build, "smt", short_gaps=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
