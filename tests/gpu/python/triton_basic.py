"""Triton kernels: element-wise, a softmax with reductions, a product with tl.dot, atomics."""
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(x + row * columns + offsets, mask=mask, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + offsets, powers / tl.sum(powers, axis=0), mask=mask)


@triton.jit
def product_kernel(a, b, c, N: tl.constexpr, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, N, TILE):
        inner = start + tl.arange(0, TILE)
        total += tl.dot(tl.load(a + rows[:, None] * N + inner[None, :]),
                        tl.load(b + inner[:, None] * N + columns[None, :]))
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def count_kernel(values, bins, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    tl.atomic_add(bins + tl.load(values + offsets, mask=mask), 1, mask=mask)


count = 100003
x = torch.arange(count, device="cuda", dtype=torch.float32) % 1000
y = torch.arange(count, device="cuda", dtype=torch.float32) % 77
out = torch.empty_like(x)
add_kernel[(triton.cdiv(count, 1024),)](x, y, out, count, BLOCK=1024)
assert torch.equal(out, x + y)
print("add:", float(out.double().sum()))

torch.manual_seed(3)
table = torch.randn(100, 333).cuda()
soft = torch.empty_like(table)
softmax_kernel[(100,)](table, soft, 333, BLOCK=512)
assert torch.allclose(soft, torch.softmax(table, 1), atol=1e-5)
print(f"softmax: {float((soft.double() ** 2).sum()):.6g}")

a = (torch.arange(256 * 256, device="cuda") % 5).reshape(256, 256).half()
b = (torch.arange(256 * 256, device="cuda") % 3).reshape(256, 256).half()
c = torch.empty(256, 256, device="cuda")
product_kernel[(4, 4)](a, b, c, N=256, TILE=64)
assert torch.equal(c, (a.double() @ b.double()).float())
print("product:", float(c.double().sum()))

values = torch.arange(count, device="cuda", dtype=torch.int32) * 7919 % 64
bins = torch.zeros(64, device="cuda", dtype=torch.int32)
count_kernel[(triton.cdiv(count, 256),)](values, bins, count, BLOCK=256)
assert torch.equal(bins.long(), torch.bincount(values.long(), minlength=64))
print("atomics:", bins[:4].tolist(), int(bins.sum()))
