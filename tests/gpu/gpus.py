#!/usr/bin/env python3
"""Two GPUs of one machine, each with a server: programs on either, placement, and ranks of PyTorch over both.

    gpus.py --build build --out OUT [--seconds 500] [--parts peer,devices,ranks]
    gpus.py --build build --plan

Needs two GPUs, PyTorch for python3, and build/bin/gpu/static/matmul_tiled (the target gpu_programs),
build/examples/static/nbody (examples) and build/bin/sim_pair and sim_peer. --plan says what would run, and
needs no GPU. Parts, each of which goes on after the failure of another; JSON lines in OUT/gpus.jsonl:

    own        one training on each GPU at the same time, by --gpu: on the GPU that was asked for, as natively
    sees_both  a program that sees both and uses the second one
    pair       one program on both (build/bin/sim_pair): kernels, copies between them, events, graphs,
               threads, wrong handles, a reset. Its native run is beside it
    any        eight programs by --gpu any: four on each
    placed     eight programs that fill a GPU each, by --gpu any and all on one GPU, by turns: how many times
               as fast both GPUs are
    peer       peer access (build/bin/sim_peer): kernels, copies, mappings, threads, a reset, refusals
    devices    one process with both (python/two_devices.py): copies and NCCL's all-reduce, natively and under
               smt by turns, with GB/s
    ranks      NCCL between two processes with a GPU each, and DistributedDataParallel, natively and under smt
               by turns, by each of NCCL's transports, with bus bandwidth. By its shared-memory transport it
               fails under smt (docs/limits.md), which does not count
The last row has the ratios of smt's GB/s to native ones; below LEAST they count as a failure.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/harness"))
from harness import Places, Runtime, base_environment  # noqa: E402

DEVICES = str(pathlib.Path(__file__).resolve().parent / "python" / "two_devices.py")
RANK = str(pathlib.Path(__file__).resolve().parent / "python" / "rank.py")
PEER = ("access", "mapped", "threads", "reset", "refused")
TRANSPORTS = {
    "default": {},
    "cudaIpc": {"NCCL_CUMEM_ENABLE": "0"},
    "sockets": {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"},
    "no peer access": {"NCCL_P2P_DISABLE": "1"},
    "files in /dev/shm": {"NCCL_P2P_DISABLE": "1", "NCCL_CUMEM_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0"},
}
MUST_WORK = {"default", "cudaIpc", "sockets"}
ROUNDS = 2       # of what is measured, natively and under smt by turns
LEAST = 0.9      # of the native bandwidth, by peer access
LEAST_PLACED = 1.5   # times as fast as one GPU
PATIENCE = 90   # seconds, of one run


class Gpus:
    def __init__(self, options):
        self.options, self.places = options, Places(options.build)
        self.rows, self.failed, self.rates = [], [], {}
        self.end = time.monotonic() + options.seconds

    def row(self, **fields):
        self.rows.append(fields)
        print(json.dumps(fields), flush=True)

    def patience(self):
        return max(5, min(PATIENCE, self.end - time.monotonic()))

    def start(self, command, runtime=None, gpu=None, tenant=None, stdin=None, **variables):
        """Natively without a runtime; then `gpu` is a number for CUDA_VISIBLE_DEVICES."""
        environment = {**base_environment(), **variables}
        if runtime:
            environment.update(runtime.variables())
            command = [self.places.smt, "run", *(["--gpu", gpu] if gpu else []),
                       *(["--tenant", tenant] if tenant else []), "--", *command]
        elif gpu:
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        return subprocess.Popen(command, env=environment, stdin=stdin, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

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
        # Two ranks share memory if they are of one tenant.
        return self.start([sys.executable, RANK, str(device)], runtime, gpu, "ranks" if world > 1 else None,
                          RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), **variables)

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
        self.programs("pair", ("work", "graphs", "threads", "wrong", "reset"), runtime)

    def peer(self, runtime):
        self.programs("peer", PEER, runtime)

    def programs(self, name, all_of_it, runtime):
        program = str(pathlib.Path(self.options.build).resolve() / "bin" / f"sim_{name}")
        for what in all_of_it:
            for where in (None, runtime):
                if where is None and what in ("reset", "refused"):
                    continue   # these ask about a handle of a context that is gone, and for what smt refuses
                _, problem = self.finish(self.start([program, what], where))
                self.row(part=name, what=what, native=where is None, right=not problem, problem=problem)
                if problem and where:
                    self.failed.append(f"{name} {what}")

    def devices(self, runtime):
        for number in range(ROUNDS):
            rows = []
            for where in (None, runtime):
                row, problem = self.finish(self.start([sys.executable, DEVICES], where, NCCL_NVLS_ENABLE="0"))
                right = not problem and bool(row and row["copies"] and row["sums"])
                rows.append(row if right else None)
                self.row(part="devices", round=number, native=where is None, right=right, values=row,
                         problem=problem)
                if not right and where:
                    self.failed.append("devices")
            self.measured("copy", rows, "copy_gb_per_s")
            self.measured("all-reduce of one process", rows, "gb_per_s")
            if None in rows:
                return   # it takes a while to fail

    def measured(self, what, rows, key):
        if all(rows):
            self.rates.setdefault(what, []).append([row[key] for row in rows])

    def ratios(self):
        for what, rates in self.rates.items():
            native, ours = (statistics.median(values) for values in zip(*rates))
            self.row(part="ratio", what=what, native=native, smt=ours, ratio=round(ours / native, 3),
                     rounds=rates)
            if ours < LEAST * native:
                self.failed.append(f"{what}: {ours:.1f} of {native:.1f} GB/s")

    def any(self, runtime):
        program = self.places.program("matmul_tiled")
        # It says where it is, and ends behind its input: the last one is placed before the first one ends.
        shell = ["/bin/sh", "-c", f"echo $CUDA_VISIBLE_DEVICES; {program} >&2 && cat"]
        children = [self.start(shell, runtime, "any", stdin=subprocess.PIPE) for _ in range(8)]
        places = [child.stdout.readline().strip() for child in children]
        problems = [problem for _, problem in map(self.finish, children) if problem]
        on = sorted(places.count(gpu) for gpu in set(places))
        self.row(part="any", right=on == [4, 4], programs=on, problem="; ".join(problems))
        if on != [4, 4] or problems:
            self.failed.append("any")

    def placed(self, runtime):
        nbody = pathlib.Path(self.options.build).resolve() / "examples/static/nbody"
        program = [str(nbody), "--size", "large", "--iterations", "200"]
        self.finish(self.start(program, runtime, "0"))   # what is compiled once
        self.finish(self.start(program, runtime, "1"))
        seconds = {"0": [], "any": []}
        for number in range(ROUNDS):
            for gpu in ("0", "any") if number % 2 == 0 else ("any", "0"):
                begin = time.monotonic()
                children = [self.start(program, runtime, gpu) for _ in range(8)]
                problems = [problem for _, problem in map(self.finish, children) if problem]
                seconds[gpu].append(round(time.monotonic() - begin, 3))
                if problems:
                    self.row(part="placed", gpu=gpu, right=False, problem="; ".join(problems))
                    self.failed.append("placed")
                    return
        ratio = statistics.median(seconds["0"]) / statistics.median(seconds["any"])
        self.row(part="placed", right=ratio >= LEAST_PLACED, times=round(ratio, 3), seconds=seconds)
        if ratio < LEAST_PLACED:
            self.failed.append("placed")

    def ranks_by(self, transport, runtime, port):
        variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "NCCL_SOCKET_IFNAME": "lo",
                     "NCCL_NVLS_ENABLE": "0", **TRANSPORTS[transport]}
        children = [self.rank(i, 2, i, runtime, **variables) for i in (0, 1)]
        return [self.finish(child) for child in children]

    def ranks(self, runtime):
        port = 29500
        for transport in self.options.transports:
            for number in range(ROUNDS if transport == "default" else 1):
                if self.end - time.monotonic() < 20:
                    self.row(part="ranks", transport=transport, right=False, problem="no time is left")
                    if transport in MUST_WORK and number == 0:
                        self.failed.append(f"ranks by {transport}")
                    return
                both = [self.ranks_by(transport, where, port + i) for i, where in enumerate((None, runtime))]
                port += 2
                if not self.compare_ranks(transport, number, both):
                    break

    def compare_ranks(self, transport, number, both):
        all_right = True
        for rank, ((native, problem), (ours, ours_problem)) in enumerate(zip(*both)):
            alike = bool(native and ours) and all(native[key] == ours[key]
                                                  for key in ("uuid", "sums", "trained"))
            right = alike and not problem and not ours_problem
            all_right = all_right and right
            self.row(part="ranks", transport=transport, round=number, rank=rank, right=right, native=native,
                     smt=ours, problem=problem or ours_problem)
            if not right and transport in MUST_WORK:
                self.failed.append(f"ranks by {transport}")
        if all_right and transport in ("default", "cudaIpc"):
            self.measured(f"all-reduce of two processes, {transport}", [row for row, _ in
                                                                       (both[0][0], both[1][0])], "gb_per_s")
        return all_right

    def tell_logs(self, part, runtime):
        for path in sorted(pathlib.Path(runtime.directory).glob("*.log")):
            self.row(part=part, server=path.stem, log=path.read_text(errors="replace")[-1500:])

    def run(self):
        for part in self.options.parts:
            try:
                with Runtime(self.places) as runtime:
                    before = len(self.failed)
                    getattr(self, part)(runtime)
                    if len(self.failed) > before:
                        self.tell_logs(part, runtime)
            except Exception as problem:   # the other parts are worth having
                self.row(part=part, right=False, problem=repr(problem))
                self.failed.append(part)
        self.ratios()


PARTS = ("peer", "devices", "ranks", "own", "sees_both", "pair", "any", "placed")


def plan(options):
    """What a run needs and does, without a GPU."""
    build = pathlib.Path(options.build).resolve()
    for name in ("bin/smt", "bin/smtd", "bin/sim_pair", "bin/sim_peer", "lib/libsmt.so",
                 "bin/gpu/static/matmul_tiled", "examples/static/nbody"):
        print(f"{name}: {'there' if (build / name).exists() else 'MISSING'}")
    for script in (RANK, DEVICES):
        compile(pathlib.Path(script).read_text(), script, "exec")
    for part in options.parts:
        print(f"{part}: {ROUNDS} rounds" if part in ("devices", "ranks") else part)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", default=".")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--parts", default=",".join(PARTS), type=lambda text: text.split(","))
    parser.add_argument("--transports", default=",".join(TRANSPORTS), type=lambda text: text.split(","),
                        help="of the part ranks")
    parser.add_argument("--plan", action="store_true")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"parts are {', '.join(PARTS)}, not {', '.join(unknown)}")
    unknown = [transport for transport in options.transports if transport not in TRANSPORTS]
    if unknown:
        parser.error(f"transports are {', '.join(TRANSPORTS)}, not {', '.join(unknown)}")
    if options.plan:
        return plan(options)
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
