#!/usr/bin/env python3
"""Two GPUs of one machine, each with a server: programs on either, placement, and ranks of PyTorch over both.

    gpus.py --build build --out OUT [--seconds 500]

Needs two GPUs, PyTorch for python3, and build/bin/gpu/static/matmul_tiled (the target gpu_programs) and
build/bin/sim_pair. Parts, each of which goes on after the failure of another; JSON lines in OUT/gpus.jsonl:

    own        one training on each GPU at the same time, by --gpu: on the GPU that was asked for, as natively
    sees_both  a program that sees both and uses the second one
    pair       one program on both (build/bin/sim_pair): kernels, copies between them, events, graphs,
               threads, wrong handles, a reset. Its native run is beside it
    any        eight programs by --gpu any: four on each
    ranks      NCCL between two processes, natively and under smt, by each of its transports. What fails under
               smt with the default transports is expected (docs/limits.md) and does not count; sockets must
               work. Bus bandwidth is in the rows.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/harness"))
from harness import Places, Runtime, base_environment  # noqa: E402

RANK = str(pathlib.Path(__file__).resolve().parent / "python" / "rank.py")
TRANSPORTS = {
    "default": {},
    "no peer access": {"NCCL_P2P_DISABLE": "1"},
    "files in /dev/shm": {"NCCL_P2P_DISABLE": "1", "NCCL_CUMEM_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0"},
    "sockets": {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"},
}
MUST_WORK = {"sockets"}
PATIENCE = 120   # seconds, of one run


class Gpus:
    def __init__(self, options):
        self.options, self.places = options, Places(options.build)
        self.rows, self.failed = [], []
        self.end = time.monotonic() + options.seconds

    def row(self, **fields):
        self.rows.append(fields)
        print(json.dumps(fields), flush=True)

    def patience(self):
        return max(5, min(PATIENCE, self.end - time.monotonic()))

    def start(self, command, runtime=None, gpu=None, **variables):
        """Natively without a runtime; then `gpu` is a number for CUDA_VISIBLE_DEVICES."""
        environment = {**base_environment(), **variables}
        if runtime:
            environment.update(runtime.variables())
            command = [self.places.smt, "run", *(["--gpu", gpu] if gpu else []), "--", *command]
        elif gpu:
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def finish(self, child):
        """(its last line as JSON or text, or None; what is wrong)."""
        try:
            out, err = child.communicate(timeout=self.patience())
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            return None, "did not end: " + err[-600:]
        if child.returncode:
            return None, f"exit code {child.returncode}: " + (out + err)[-1500:]
        last = out.strip().splitlines()[-1] if out.strip() else ""
        try:
            return json.loads(last), ""
        except ValueError:
            return last, ""

    def rank(self, rank, world, device, runtime=None, gpu=None, **variables):
        return self.start([sys.executable, RANK, str(device)], runtime, gpu, RANK=str(rank),
                          WORLD_SIZE=str(world), LOCAL_RANK=str(rank), **variables)

    def both(self, runtime, device, gpu):
        children = [self.rank(0, 1, device(i), runtime, gpu(i)) for i in (0, 1)]
        return [self.finish(child) for child in children]

    def compare(self, part, native, ours):
        for i, ((wanted, problem), (got, ours_problem)) in enumerate(zip(native, ours)):
            right = not problem and not ours_problem and got == wanted
            self.row(part=part, which=i, right=right, native=wanted, smt=got, problem=problem or ours_problem)
            if not right:
                self.failed.append(part)

    def own(self, runtime):
        def zero(_):
            return 0
        self.compare("own", self.both(None, zero, str), self.both(runtime, zero, str))

    def sees_both(self, runtime):
        native = [self.finish(self.rank(0, 1, 1))]
        self.compare("sees_both", native, [self.finish(self.rank(0, 1, 1, runtime))])

    def pair(self, runtime):
        program = str(pathlib.Path(self.options.build).resolve() / "bin" / "sim_pair")
        for what in ("work", "graphs", "threads", "wrong", "reset"):
            for where in (None, runtime):
                if where is None and what == "reset":
                    continue   # it asks about a handle of a context that is gone
                _, problem = self.finish(self.start([program, what], where))
                self.row(part="pair", what=what, native=where is None, right=not problem, problem=problem)
                if problem and where:
                    self.failed.append(f"pair {what}")

    def any(self, runtime):
        program = self.places.program("matmul_tiled")
        # The last one is placed before the first one ends.
        shell = ["/bin/sh", "-c", f"echo $CUDA_VISIBLE_DEVICES; {program} >&2 && sleep 5"]
        children = [self.start(shell, runtime, "any") for _ in range(8)]
        done = [self.finish(child) for child in children]
        on = sorted([got for got, _ in done].count(gpu) for gpu in {got for got, _ in done})
        problems = [problem for _, problem in done if problem]
        self.row(part="any", right=on == [4, 4], programs=on, problem="; ".join(problems))
        if on != [4, 4] or problems:
            self.failed.append("any")

    def ranks_by(self, transport, runtime, port):
        variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "NCCL_SOCKET_IFNAME": "lo",
                     "NCCL_NVLS_ENABLE": "0", **TRANSPORTS[transport]}
        children = [self.rank(i, 2, i, runtime, **variables) for i in (0, 1)]
        return [self.finish(child) for child in children]

    def ranks(self, runtime):
        for number, transport in enumerate(TRANSPORTS):
            both = [self.ranks_by(transport, where, 29500 + 2 * number + i)
                    for i, where in enumerate((None, runtime))]
            for rank, ((native, problem), (ours, ours_problem)) in enumerate(zip(*both)):
                alike = bool(native and ours) and all(native[key] == ours[key]
                                                      for key in ("uuid", "sums", "trained"))
                right = alike and not problem and not ours_problem
                self.row(part="ranks", transport=transport, rank=rank, right=right, native=native, smt=ours,
                         problem=problem or ours_problem)
                if not right and transport in MUST_WORK:
                    self.failed.append(f"ranks by {transport}")

    def run(self):
        for part in (self.own, self.sees_both, self.pair, self.any, self.ranks):
            try:
                with Runtime(self.places) as runtime:
                    part(runtime)
            except Exception as problem:   # the other parts are worth having
                self.row(part=part.__name__, right=False, problem=repr(problem))
                self.failed.append(part.__name__)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", default=".")
    parser.add_argument("--seconds", type=float, default=500)
    options = parser.parse_args()
    counted = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.device_count())"],
                             capture_output=True, text=True, timeout=120)
    if counted.returncode or int(counted.stdout) < 2:
        sys.exit("gpus.py needs PyTorch and two GPUs: " + (counted.stderr[-500:] or counted.stdout))
    gpus = Gpus(options)
    gpus.run()
    pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in gpus.rows)
    (pathlib.Path(options.out) / "gpus.jsonl").write_text(lines)
    print("all right" if not gpus.failed else "failed: " + ", ".join(sorted(set(gpus.failed))))
    return 1 if gpus.failed else 0


if __name__ == "__main__":
    sys.exit(main())
