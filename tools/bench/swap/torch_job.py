#!/usr/bin/env python3
"""A job of PyTorch with so much memory in parameters, for swap.py --jobs torch.

    torch_job.py [--stub] work MIB PIECE STEPS     a step over all of MIB, in tensors of PIECE MiB
    torch_job.py [--stub] time MIB PIECE SECONDS   the same for so long; says how many steps that were
    torch_job.py [--stub] cells MIB PIECE          a step for each line of input, and its milliseconds

A step multiplies each tensor by a vector, adds one to each of its words, and adds what comes out to a
checksum. Words are small whole numbers, so sums are exact in whatever order they are made, and the checksum
after so many steps is known: `right` in the last line of JSON says that it is that one. --stub, on the
simulated device: memory of CUDA's runtime without PyTorch, which is filled and looked at in two places.
"""
import ctypes
import json
import sys
import time

COLUMNS = 1024
BLOCK = 256          # rows; a whole number of them is a piece, and of BLOCK those that are alike
ALIKE = 4            # row r of piece k begins with (r + k) % ALIKE
MOST = 1024          # after so many steps words begin anew: sums stay below 2^24, where floats are exact
FEWEST = 4           # pieces
HEAVIEST = 97        # of the rows' weights


def factor(column):
    return column % 3


def weight(row):
    return row % HEAVIEST + 1


def level(step):
    """What the step, from 1, finds added to each word."""
    return (step - 1) % MOST


class Expected:
    """The checksum, without the memory."""

    def __init__(self, pieces, rows):
        begins = [sum((j + c) % ALIKE * factor(c) for c in range(COLUMNS)) for j in range(ALIKE)]
        weights = [sum(weight(r) for r in range(j, rows, ALIKE)) for j in range(ALIKE)]
        self.begin = sum(begins[(j + k) % ALIKE] * weights[j] for k in range(pieces) for j in range(ALIKE))
        self.each = pieces * sum(weights) * sum(factor(c) for c in range(COLUMNS))

    def after(self, steps):
        return sum(self.begin + level(step) * self.each for step in range(1, steps + 1)) % 2**62


class Torch:
    def __init__(self, pieces, rows):
        import torch  # noqa: PLC0415: --stub needs none
        self.torch = torch
        self.factors = torch.tensor([factor(c) for c in range(COLUMNS)], dtype=torch.float32, device="cuda")
        self.weights = torch.arange(rows, device="cuda") % HEAVIEST + 1
        self.sum = torch.zeros((), dtype=torch.int64, device="cuda")
        row, column = torch.arange(BLOCK, device="cuda"), torch.arange(COLUMNS, device="cuda")
        self.pieces = []
        for k in range(pieces):
            block = ((row[:, None] + k) % ALIKE + column[None, :]) % ALIKE
            piece = torch.empty(rows, COLUMNS, dtype=torch.float32, device="cuda")
            piece.view(-1, BLOCK, COLUMNS).copy_(block.to(torch.float32))
            self.pieces.append(piece)
        torch.cuda.synchronize()

    def step(self, number):
        for piece in self.pieces:
            self.sum += (self.torch.mv(piece, self.factors).to(self.torch.int64) * self.weights).sum()
            piece.add_(1)
            if level(number + 1) == 0:
                piece.sub_(MOST)
        self.sum %= 2**62
        self.torch.cuda.synchronize()

    def checksum(self):
        return int(self.sum)


class Stub:
    def __init__(self, pieces, rows):
        self.runtime = ctypes.CDLL("libcudart.so.13")
        self.bytes, self.steps = rows * COLUMNS * 4, 0
        self.expected, self.right = Expected(pieces, rows), True
        self.pieces = [ctypes.c_void_p() for _ in range(pieces)]
        for piece in self.pieces:
            self.call("cudaMalloc", ctypes.byref(piece), ctypes.c_size_t(self.bytes))
            self.call("cudaMemset", piece, 0, ctypes.c_size_t(self.bytes))

    def call(self, name, *arguments):
        status = getattr(self.runtime, name)(*arguments)
        if status:
            raise SystemExit(f"torch_job.py: {name} fails with {status}")

    def step(self, number):
        seen = ctypes.create_string_buffer(1)
        for piece in self.pieces:
            for place in (0, self.bytes - 1):
                self.call("cudaMemcpy", seen, ctypes.c_void_p(piece.value + place), ctypes.c_size_t(1), 2)
                self.right = self.right and seen.raw[0] == (number - 1) % 256
            self.call("cudaMemset", piece, number % 256, ctypes.c_size_t(self.bytes))
        self.call("cudaDeviceSynchronize")
        self.steps = number

    def checksum(self):
        return self.expected.after(self.steps) + (0 if self.right else 1)


class Job:
    def __init__(self, kind, mib, piece_mib):
        count = max(mib // piece_mib, FEWEST)
        rows = mib * 2**20 // count // (BLOCK * COLUMNS * 4) * BLOCK
        if rows == 0:
            raise SystemExit(f"torch_job.py: {mib} MiB are less than {FEWEST} pieces of a MiB")
        self.memory, self.expected = kind(count, rows), Expected(count, rows)
        self.steps, self.longest, self.last = 0, 0.0, 0.0

    def step(self):
        begun = time.monotonic()
        self.steps += 1
        self.memory.step(self.steps)
        self.last = time.monotonic() - begun
        self.longest = max(self.longest, self.last)

    def end(self, begun):
        checksum, wanted = self.memory.checksum(), self.expected.after(self.steps)
        print(json.dumps({"right": checksum == wanted, "checksum": checksum, "passes": self.steps,
                          "seconds": time.monotonic() - begun, "longest_pass_s": self.longest}), flush=True)
        return 0 if checksum == wanted else 1


def main(arguments):
    kind = Stub if arguments[:1] == ["--stub"] else Torch
    what, *numbers = arguments[kind is Stub:] or [""]
    if len(numbers) != {"work": 3, "time": 3, "cells": 2}.get(what):
        print(__doc__, file=sys.stderr)
        return 2
    job = Job(kind, int(numbers[0]), int(numbers[1]))
    print("READY", flush=True)
    begun = time.monotonic()
    if what == "cells":
        for _ in iter(sys.stdin.readline, ""):
            job.step()
            print(json.dumps({"cell_ms": job.last * 1e3}), flush=True)
    while what == "time" and time.monotonic() < begun + float(numbers[2]):
        job.step()
    while what == "work" and job.steps < int(numbers[2]):
        job.step()
    return job.end(begun)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
