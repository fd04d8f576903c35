"""The kernels of triton_kernel.py that also tell when each program began and ended, by the GPU's clock. Apart
from those, which stay as they are."""
import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer

from triton_kernel import gelu_kernel, matmul_kernel, softmax_kernel


@triton.jit
def tell(times, begin):
    tl.debug_barrier()
    place = times + 2 * (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1))
    tl.store(place, begin)
    tl.store(place + 1, globaltimer())


@triton.jit
def softmax_clocked(times, out, rows, columns: tl.constexpr):
    begin = globaltimer()
    softmax_kernel(out, rows, columns)
    tell(times, begin)


@triton.jit
def gelu_clocked(times, out, values, columns: tl.constexpr):
    begin = globaltimer()
    gelu_kernel(out, values, columns)
    tell(times, begin)


@triton.jit
def matmul_clocked(times, out, first, second, columns, inner, rows_each: tl.constexpr,
                   columns_each: tl.constexpr, inner_each: tl.constexpr):
    begin = globaltimer()
    matmul_kernel(out, first, second, columns, inner, rows_each, columns_each, inner_each)
    tell(times, begin)


def times_for(count, like):
    return torch.zeros(count, 2, device=like.device, dtype=torch.int64)


def softmax(rows):
    times = times_for(rows.shape[0], rows)
    softmax_clocked[(rows.shape[0],)](times, torch.empty_like(rows), rows, rows.shape[1])
    return times


def gelu(values):
    times = times_for(values.shape[0], values)
    gelu_clocked[(values.shape[0],)](times, torch.empty_like(values), values, values.shape[1])
    return times


def matmul(first, second):
    (rows, inner), columns = first.shape, second.shape[1]
    tile = min(128, rows), min(128, columns), min(64, inner)
    grid = rows // tile[0], columns // tile[1]
    times = times_for(grid[0] * grid[1], first)
    out = torch.empty(rows, columns, device=first.device, dtype=first.dtype)
    matmul_clocked[grid](times, out, first, second, columns, inner, *tile, num_warps=8)
    return times
