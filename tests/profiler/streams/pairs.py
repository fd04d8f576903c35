#!/usr/bin/env python3
"""Records what each example's kernels execute on the simulated device at size trivial, and asks what the
models make of it.

    pairs.py SMT PREDICTED_AGAINST_SIMULATED PROGRAM...
"""
import os
import pathlib
import subprocess
import sys
import tempfile

PATIENCE = 120


def main():
    smt, compare, *programs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        streams = pathlib.Path(folder) / "streams"
        for program in programs:
            name = pathlib.Path(program).name
            kept = streams / name
            kept.mkdir(parents=True)
            runtime = pathlib.Path(folder) / name
            runtime.mkdir(mode=0o700)
            # In their own form, so that nothing of the loop around managed kernels is in it.
            environment = {**os.environ, "SMT_RUNTIME_DIR": str(runtime),
                           "SMT_SIM": f"streams={kept},grace=20", "SMT_COMPILE": "ptx=0",
                           "SMT_PROFILES": "none", "SMT_CACHE_DIR": str(pathlib.Path(folder) / "cache")}
            try:
                done = subprocess.run([smt, "run", "--device", "sim", "--", program, "--size", "trivial"],
                                      env=environment, timeout=PATIENCE,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            finally:
                subprocess.run([smt, "server", "stop"], env=environment, timeout=PATIENCE,
                               stdout=subprocess.DEVNULL)
            assert done.returncode == 0, f"{name}: {done.returncode}\n{done.stdout}"
            assert list(kept.iterdir()), f"{name}: no kernel was recorded"
        if keep := os.environ.get("KEEP_STREAMS"):   # for a look at them
            subprocess.run(["cp", "-r", str(streams), keep], check=True)
        return subprocess.run([compare, str(streams)], timeout=2 * PATIENCE).returncode


if __name__ == "__main__":
    sys.exit(main())
