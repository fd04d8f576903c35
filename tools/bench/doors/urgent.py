"""An urgent tenant: a short kernel now and then, at random, until its input ends.

    urgent.py MILLISECONDS [SEED]

MILLISECONDS between two of them in the mean (exponentially distributed); 0: none ever. Answers "here" when
its first kernel is over, and how many there were at the end.
"""
import random
import select
import sys
import time

from driver import Driver

BLOCKS, NANOSECONDS = 132, 5_000


def main():
    mean, choices = float(sys.argv[1]) / 1e3, random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    driver = Driver()
    spend, count = driver.kernel("spend"), 1
    driver.launch(spend, BLOCKS, NANOSECONDS)
    driver.wait()
    print("here", flush=True)
    if mean == 0:
        sys.stdin.read()
    next_one = time.monotonic()
    while mean:
        next_one = max(time.monotonic(), next_one + choices.expovariate(1 / mean))
        ended, _, _ = select.select([sys.stdin], [], [], max(0, next_one - time.monotonic()))
        if ended and not sys.stdin.readline():
            break
        driver.launch(spend, BLOCKS, NANOSECONDS)
        driver.wait()
        count += 1
    assert driver.counted() == count * BLOCKS, "blocks of the urgent kernel are missing"
    print(count, flush=True)


if __name__ == "__main__":
    main()
