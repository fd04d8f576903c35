#!/usr/bin/env python3
"""Writes the PTX that Triton makes of the kernels below: kernels.py FOLDER. Needs Triton (pip install triton
numpy), no GPU.

Kernels of the kinds that Triton is used for: element by element, reductions over rows, products on tensor
cores, loops that copy ahead, atomics, grids that take several tiles a block, blocks that wait for others,
functions of libdevice, assertions' printing. Each for the architectures at which Triton takes another way.
"""
import pathlib
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice


@triton.jit
def vector_add(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


@triton.jit
def softmax(values, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(values + row * columns + at, mask=inside, other=-float("inf"))
    power = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + row * columns + at, power / tl.sum(power, axis=0), mask=inside)


@triton.jit
def layer_norm(values, scale, shift, out, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        x = tl.load(values + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        total += x
        squares += x * x
    mean = tl.sum(total, axis=0) / columns
    inverse = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns - mean * mean + epsilon)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        inside = at < columns
        x = tl.load(values + row * columns + at, mask=inside, other=0.0).to(tl.float32)
        y = (x - mean) * inverse * tl.load(scale + at, mask=inside) + tl.load(shift + at, mask=inside)
        tl.store(out + row * columns + at, y.to(tl.float16), mask=inside)


@triton.jit
def matmul(a, b, c, m, n, k, BLOCK: tl.constexpr, DEEP: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, DEEP)
    sums = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    for begin in range(0, k, DEEP):
        left = tl.load(a + rows[:, None] * k + (begin + inner)[None, :], mask=(begin + inner)[None, :] < k,
                       other=0.0)
        right = tl.load(b + (begin + inner)[:, None] * n + columns[None, :],
                        mask=(begin + inner)[:, None] < k, other=0.0)
        sums = tl.dot(left, right, sums)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(tl.float16), mask=inside)


@triton.jit
def persistent_matmul(a, b, c, m, n, k, BLOCK: tl.constexpr, DEEP: tl.constexpr):
    across = tl.cdiv(n, BLOCK)
    for tile in range(tl.program_id(0), tl.cdiv(m, BLOCK) * across, tl.num_programs(0)):
        rows = (tile // across) * BLOCK + tl.arange(0, BLOCK)
        columns = (tile % across) * BLOCK + tl.arange(0, BLOCK)
        inner = tl.arange(0, DEEP)
        sums = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
        for begin in range(0, k, DEEP):
            left = tl.load(a + rows[:, None] * k + (begin + inner)[None, :])
            right = tl.load(b + (begin + inner)[:, None] * n + columns[None, :])
            sums = tl.dot(left, right, sums)
        tl.store(c + rows[:, None] * n + columns[None, :], sums,
                 mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def histogram(values, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.atomic_add(bins + tl.load(values + at, mask=inside, other=0), 1, mask=inside)


@triton.jit
def locked_sum(values, lock, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mine = tl.sum(tl.load(values + at, mask=at < n, other=0.0), axis=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + mine)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def add_up(a, b):
    return a + b


@triton.jit
def row_scan(values, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(values + row * columns + at, mask=at < columns, other=0)
    tl.store(out + row * columns + at, tl.associative_scan(x, 0, add_up), mask=at < columns)


@triton.jit
def sort_rows(values, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(values + at)))


@triton.jit
def random_gelu(values, out, seed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(values + at, mask=inside).to(tl.float32)
    y = 0.5 * x * (1 + libdevice.erf(x * 0.70710678))
    kept = tl.rand(seed, at) > 0.1
    tl.store(out + at, tl.where(kept, y / 0.9, 0.0).to(tl.bfloat16), mask=inside)


@triton.jit
def transpose(values, out, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(values + i[:, None] * columns + j[None, :],
                   mask=(i[:, None] < rows) & (j[None, :] < columns))
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(tile),
             mask=(j[:, None] < columns) & (i[None, :] < rows))


@triton.jit
def attention(query, key, value, out, length, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wide = tl.arange(0, SIZE)
    q = tl.load(query + rows[:, None] * SIZE + wide[None, :])
    highest = tl.full([BLOCK], -float("inf"), dtype=tl.float32)
    weight = tl.zeros([BLOCK], dtype=tl.float32)
    sums = tl.zeros([BLOCK, SIZE], dtype=tl.float32)
    for begin in range(0, length, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        uniformity = tl.dot(q, tl.trans(tl.load(key + at[:, None] * SIZE + wide[None, :])))
        higher = tl.maximum(highest, tl.max(uniformity, axis=1))
        power = tl.exp(uniformity - higher[:, None])
        shrink = tl.exp(highest - higher)
        weight = weight * shrink + tl.sum(power, axis=1)
        sums = tl.dot(power.to(tl.float16), tl.load(value + at[:, None] * SIZE + wide[None, :]),
                      sums * shrink[:, None])
        highest = higher
    tl.store(out + rows[:, None] * SIZE + wide[None, :], (sums / weight[:, None]).to(tl.float16))


@triton.jit
def tensor_copy(source, target, rows, columns, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(source, shape=[rows, columns], strides=[columns, 1],
                                       block_shape=[BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(target, shape=[rows, columns], strides=[columns, 1],
                                       block_shape=[BLOCK, BLOCK])
    at = [tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK]
    target.store(at, source.load(at) * 2)


# kernel, types of its parameters, constants, options, architectures
F32, F16, I32 = "*fp32", "*fp16", "*i32"
KERNELS = [
    (vector_add, (F32, F32, F32, "i32"), {"BLOCK": 512}, {}, (75, 90, 100)),
    (softmax, (F32, F32, "i32"), {"BLOCK": 512}, {}, (75, 90, 100)),
    (layer_norm, (F16, F32, F32, F16, "i32", "fp32"), {"BLOCK": 512}, {"num_warps": 8}, (75, 90)),
    (matmul, (F16, F16, F16, "i32", "i32", "i32"), {"BLOCK": 64, "DEEP": 32}, {"num_stages": 2},
     (80, 90, 100)),
    (persistent_matmul, (F16, F16, F32, "i32", "i32", "i32"), {"BLOCK": 64, "DEEP": 32},
     {"num_stages": 2}, (80, 90)),
    (histogram, (I32, I32, "i32"), {"BLOCK": 512}, {}, (75, 90)),
    (locked_sum, (F32, I32, F32, "i32"), {"BLOCK": 512}, {}, (75, 90)),
    (row_scan, (I32, I32, "i32"), {"BLOCK": 256}, {}, (75, 90)),
    (sort_rows, (I32, I32), {"BLOCK": 128}, {"num_warps": 1}, (90,)),
    (random_gelu, (F32, "*bf16", "i32", "i32"), {"BLOCK": 256}, {}, (80, 90)),
    (transpose, (F32, F32, "i32", "i32"), {"BLOCK": 32}, {}, (75, 90)),
    (attention, (F16, F16, F16, F16, "i32"), {"SIZE": 32, "BLOCK": 32}, {"num_stages": 1}, (80, 90)),
    (tensor_copy, (F32, F32, "i32", "i32"), {"BLOCK": 32}, {}, (90, 100)),
]


def without_debug(text):
    """Without sections and comments of where it was written: they name this file's place."""
    text = re.sub(r"^\t*\.section\s+\.debug_\w+\n\s*\{.*?^\t*\}\n", "", text, flags=re.M | re.S)
    text = re.sub(r"^.*(\.file|\.loc)\s.*\n", "", text, flags=re.M)
    return re.sub(r"^\$L__(tmp|func_begin|func_end)\d+:.*\n|^\s*//.*\n|\s*//.*$", "", text,
                  flags=re.M).replace(", debug", "")


def main(folder):
    for function, types, constants, options, architectures in KERNELS:
        names = [name for name in function.arg_names if name not in constants]
        signature = dict(zip(names, types)) | {name: "constexpr" for name in constants}
        for architecture in architectures:
            source = ASTSource(function, signature, {(function.arg_names.index(name),): value
                                                     for name, value in constants.items()})
            version = 90 if architecture >= 90 else 88   # what CUDA 13.0 reads
            text = triton.compile(source, target=GPUTarget("cuda", architecture, 32),
                                  options={**options, "ptx_version": version}).asm["ptx"]
            path = pathlib.Path(folder) / f"{function.__name__}.{architecture}.ptx"
            path.write_text(without_debug(text))
            print(path.name, len(path.read_text()))


if __name__ == "__main__":
    main(sys.argv[1])
