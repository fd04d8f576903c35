"""Stands in for models.py where there is no PyTorch: models_stub.py --trials N NAME...

On the simulated device:

  right     its result is how many blocks counted themselves
  changing  other bits in every process, natively, too
  wrong     other bits while it is stopped
  ends      its process ends in the second trial while it is stopped
  missing   a library is not there
"""
import argparse
import json
import os
import select
import sys

from driver import Driver

MODELS = ("right", "changing", "wrong", "ends", "missing")
BLOCKS, BLOCK_NS, LAUNCHES = 600, 20_000, 2


def result(name, driver, stopped, trial):
    before, kernel = driver.counted(), driver.kernel("spend")
    for _ in range(LAUNCHES):
        driver.launch(kernel, BLOCKS, BLOCK_NS)
    driver.wait()
    if name == "ends" and stopped and trial == 2:
        os._exit(9)
    return {"right": driver.counted() - before, "changing": os.getpid(), "wrong": stopped, "ends": 0}[name]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--paced", action="store_true")
    options = parser.parse_args()
    stopped = int(os.environ.get("SMT_STRESS", "0") != "0")
    if options.paced:
        sys.stdin.readline()
    driver = Driver()
    for name in options.names:
        if name == "missing":
            print(json.dumps({"model": name, "missing": "a library"}), flush=True)
            continue
        trial = 0
        while True:
            trial += 1
            print(json.dumps({"model": name, "trial": trial,
                              "hash": str(result(name, driver, stopped, trial))}), flush=True)
            ended = select.select([sys.stdin], [], [], 0)[0] and not sys.stdin.readline()
            if trial == options.trials or (not options.trials and ended):
                break


if __name__ == "__main__":
    main()
