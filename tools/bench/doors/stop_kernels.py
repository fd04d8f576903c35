#!/usr/bin/env python3
"""Kernels of libraries, one at a time, for stop_times.py: stop_kernels.py facts|loop [NAME...]

  facts   natively: for each the kernel that takes longest, its grid, its time, and how long a block takes
  loop    each is launched in batches, for its part of the time that is left until --until

A JSON line as each begins and ends, with a hash of what it computed. --place cpu tries this without a GPU,
with tiny sizes; --place stub without PyTorch, on the simulated device.

How long a block takes, natively, while the GPU is full (block_by):
  clock      by the GPU's clock in the kernel itself, of ours and Triton's: the longest block in flight at a
             random moment of a launch, median
  one wave   the time of the same kernel with a grid of one full wave, as many blocks as fit on the GPU at
             once, median of 20 launches; `fill` is how much of a wave it was
  waves      where the library takes another kernel for such a grid, or blocks take longer in the mean: the
             kernel's time through its waves, that is, the mean of its blocks as if all places were taken all
             the time
  kernel     where the grid is one wave (a persistent kernel): the kernel's time
  step       without the profiler of PyTorch: a step's time by events, through the waves of its largest grid
"""
import argparse
import json
import os
import pathlib
import sys
import time
import traceback


def say(**fields):
    print(json.dumps(fields), flush=True)


AFTER = 2.0   # seconds behind a kernel's time, for results, and for the journal to be read


def loop(place, name, seconds, folder):
    say(begin=name, ns=time.monotonic_ns())
    end = time.monotonic() + seconds - min(AFTER, seconds / 3)
    kernel, steps = place.make(name), 0
    ready = time.monotonic_ns()
    while steps == 0 or time.monotonic() < end:
        for _ in range(place.batch):
            kernel.step()
        place.wait()
        steps += place.batch
    say(end=name, ns=time.monotonic_ns(), ready_ns=ready, steps=steps, hash=kernel.result())


def facts(place, name, seconds, folder):
    say(begin=name, ns=time.monotonic_ns())
    kernel = place.make(name)
    found = {"step_us": place.step_us(kernel), "hash": kernel.result()}
    del kernel
    try:
        found.update(place.facts(name, folder))
    except Exception as error:   # no profiler, for instance
        traceback.print_exc()
        found["unknown"] = f"{type(error).__name__}: {error}"[:300]
    say(end=name, ns=time.monotonic_ns(), **found)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["facts", "loop"])
    parser.add_argument("names", nargs="*", help="default: all")
    parser.add_argument("--place", choices=["cuda", "cpu", "stub"], default="cuda")
    parser.add_argument("--until", type=float, default=0, help="by CLOCK_MONOTONIC")
    parser.add_argument("--scratch", default="/tmp", help="folder for profiles")
    options = parser.parse_args()
    if options.place == "stub":
        from stop_stub import Place
        place = Place()
    else:
        from stop_library_kernels import Place
        place = Place(options.place)
    do = {"facts": facts, "loop": loop}[options.what]
    names = options.names or place.names()
    for number, name in enumerate(names):
        try:
            do(place, name, (options.until - time.monotonic()) / (len(names) - number), options.scratch)
        except Exception as error:   # a library or a kernel that is missing must not end the others
            traceback.print_exc()
            say(end=name, ns=time.monotonic_ns(), failed=f"{type(error).__name__}: {error}"[:300])
    sys.stdout.flush()
    os._exit(0)   # what libraries do at exit is no part of it


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    main()
