"""Kernels that Triton compiles, for models.py and stop_library_kernels.py: Triton reads a kernel's source
from its file."""
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(out, rows, columns: tl.constexpr):
    place = tl.program_id(0) * columns + tl.arange(0, columns)
    values = tl.load(rows + place)
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + place, values / tl.sum(values, axis=0))


def softmax(rows):
    out = torch.empty_like(rows)
    softmax_kernel[(rows.shape[0],)](out, rows, rows.shape[1])
    return out


@triton.jit
def gelu_kernel(out, values, columns: tl.constexpr):
    place = tl.program_id(0) * columns + tl.arange(0, columns)
    value = tl.load(values + place).to(tl.float32)
    value = value / (1 + tl.exp(-1.702 * value))
    tl.store(out + place, value.to(out.dtype.element_ty))


def gelu(values):
    out = torch.empty_like(values)
    gelu_kernel[(values.shape[0],)](out, values, values.shape[1])
    return out


@triton.jit
def matmul_kernel(out, first, second, columns, inner, rows_each: tl.constexpr, columns_each: tl.constexpr,
                  inner_each: tl.constexpr):
    """Row-major matrices whose sides are multiples of the tile's."""
    row = tl.program_id(0) * rows_each + tl.arange(0, rows_each)[:, None]
    column = tl.program_id(1) * columns_each + tl.arange(0, columns_each)[None, :]
    along = tl.arange(0, inner_each)
    total = tl.zeros((rows_each, columns_each), dtype=tl.float32)
    for begin in range(0, inner, inner_each):
        left = tl.load(first + row * inner + (begin + along)[None, :])
        right = tl.load(second + (begin + along)[:, None] * columns + column)
        total = tl.dot(left, right, total)
    tl.store(out + row * columns + column, total.to(out.dtype.element_ty))


def matmul(first, second):
    (rows, inner), columns = first.shape, second.shape[1]
    tile = min(128, rows), min(128, columns), min(64, inner)
    out = torch.empty(rows, columns, device=first.device, dtype=first.dtype)
    grid = rows // tile[0], columns // tile[1]
    matmul_kernel[grid](out, first, second, columns, inner, *tile, num_warps=8)
    return out
