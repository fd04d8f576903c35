"""Triton: one theme a program."""
import program as p
from program import program, show

import torch
import triton
import triton.language as tl

torch.manual_seed(3)


def gpu(*shape, dtype=torch.float32):
    return torch.randn(*shape).to("cuda", dtype)


def near(name, ours, reference, tolerance=1e-3):
    error = float((ours.double() - reference.double()).abs().max())
    assert error <= tolerance, f"{name}: off by {error}"
    show(name, "right")


@triton.autotune(configs=[triton.Config({"M": m, "N": n, "K": 32}, num_warps=w, num_stages=s)
                          for m, n, w, s in ((64, 64, 4, 2), (128, 64, 4, 3), (32, 64, 2, 4))], key=["size"])
@triton.jit
def product_kernel(a, b, c, size, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, size, K):
        inner = start + tl.arange(0, K)
        total += tl.dot(tl.load(a + rows[:, None] * size + inner[None, :]),
                        tl.load(b + inner[:, None] * size + columns[None, :]))
    tl.store(c + rows[:, None] * size + columns[None, :], total)


@program
def product_autotuned():
    a, b, c = gpu(512, 512,
                  dtype=torch.float16), gpu(512, 512,
                                            dtype=torch.float16), torch.empty(512, 512, device="cuda")
    product_kernel[lambda meta: (512 // meta["M"], 512 // meta["N"])](a, b, c, 512)
    near("product", c, a.float() @ b.float(), 0.05)


@triton.jit
def normalise_kernel(x, weight, out, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(x + row * columns + offsets, mask=mask, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    centred = tl.where(mask, values - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    tl.store(out + row * columns + offsets,
             centred * tl.rsqrt(variance + 1e-5) * tl.load(weight + offsets, mask=mask), mask=mask)


@program
def layer_norm():
    x, weight = gpu(50, 300), gpu(300)
    out = torch.empty_like(x)
    normalise_kernel[(50,)](x, weight, out, 300, BLOCK=512)
    near("layer norm", out, torch.nn.functional.layer_norm(x, (300,), weight))


@triton.jit
def attention_kernel(q, k, v, out, length, scale, BLOCK: tl.constexpr, D: tl.constexpr):
    rows, columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    base = tl.program_id(1) * length * D
    query = tl.load(q + base + rows[:, None] * D + columns[None, :])
    most = tl.full((BLOCK,), -float("inf"), tl.float32)
    weight, total = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK, D), tl.float32)
    for start in range(0, length, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        scores = tl.dot(query, tl.trans(tl.load(k + base + inner[:, None] * D + columns[None, :]))) * scale
        new = tl.maximum(most, tl.max(scores, 1))
        powers, old = tl.exp(scores - new[:, None]), tl.exp(most - new)
        weight = weight * old + tl.sum(powers, 1)
        total = total * old[:, None] + tl.dot(powers.to(tl.float16),
                                              tl.load(v + base + inner[:, None] * D + columns[None, :]))
        most = new
    tl.store(out + base + rows[:, None] * D + columns[None, :], (total / weight[:, None]).to(tl.float16))


@program
def attention():
    q, k, v = (gpu(4, 256, 64, dtype=torch.float16) for _ in range(3))
    out = torch.empty_like(q)
    attention_kernel[(4, 4)](q, k, v, out, 256, 0.125, BLOCK=64, D=64)
    near("attention", out, torch.nn.functional.scaled_dot_product_attention(q, k, v), 0.02)


@triton.jit
def histogram_kernel(keys, bins, best, lock, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    values = tl.load(keys + offsets, mask=mask, other=0)
    tl.atomic_add(bins + values, 1, mask=mask)
    tl.atomic_max(best, tl.max(values, 0))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(lock + 1, tl.load(lock + 1) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@program
def atomics():
    keys = torch.randint(0, 32, (5000,), dtype=torch.int32).cuda()
    bins, best, lock = torch.zeros(32, dtype=torch.int32, device="cuda"), torch.zeros(
        1, dtype=torch.int32, device="cuda"), torch.zeros(2, dtype=torch.int32, device="cuda")
    histogram_kernel[(20,)](keys, bins, best, lock, 5000, BLOCK=256)
    show("histogram", torch.equal(bins.long(), torch.bincount(keys.long(), minlength=32)),
         int(best), lock.tolist())


@triton.jit
def combine(a, b):
    return a * 0.9 + b


@triton.jit
def scan_kernel(x, sums, products, sorted_values, N: tl.constexpr):
    offsets = tl.arange(0, N)
    values = tl.load(x + offsets)
    tl.store(sums + offsets, tl.cumsum(values, 0))
    tl.store(products + offsets, tl.associative_scan(values, 0, combine))
    tl.store(sorted_values + offsets, tl.sort(values))


@program
def scans_and_sorting():
    x = gpu(256)
    sums, products, ordered = (torch.empty_like(x) for _ in range(3))
    scan_kernel[(1,)](x, sums, products, ordered, N=256)
    near("sums", sums, x.cumsum(0))
    near("sorted", ordered, x.sort().values)


@triton.jit
def random_kernel(out, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.rand(seed, offsets) + tl.randn(seed + 1, offsets))


@program
def random_numbers():
    out = torch.empty(4096, device="cuda")
    random_kernel[(16,)](out, 77, BLOCK=256)
    show("sum", round(float(out.double().sum()), 2))


@triton.jit
def descriptor_kernel(x, y, M, N, A: tl.constexpr, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[A, B])
    target = tl.make_tensor_descriptor(y, shape=[M, N], strides=[N, 1], block_shape=[A, B])
    row, column = tl.program_id(0) * A, tl.program_id(1) * B
    target.store([row, column], source.load([row, column]) * 2)


@program
def tensor_descriptors():
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    x = gpu(128, 256)
    y = torch.empty_like(x)
    descriptor_kernel[(4, 4)](x, y, 128, 256, A=32, B=64)
    near("doubled", y, x * 2)


@triton.jit
def host_descriptor_kernel(source, target, A: tl.constexpr, B: tl.constexpr):
    row, column = tl.program_id(0) * A, tl.program_id(1) * B
    target.store([row, column], source.load([row, column]) + 1)


@program
def host_descriptors():
    from triton.tools.tensor_descriptor import TensorDescriptor
    x = gpu(128, 256, dtype=torch.float16)
    y = torch.empty_like(x)
    host_descriptor_kernel[(4, 4)](TensorDescriptor.from_tensor(x, [32, 64]),
                                   TensorDescriptor.from_tensor(y, [32, 64]), A=32, B=64)
    near("plus one", y, x + 1, 0.01)


@triton.jit
def printing_kernel(x):
    tl.device_print("value", tl.load(x))


@program
def printing():
    printing_kernel[(1,)](torch.full((1,), 42, dtype=torch.int32, device="cuda"), num_warps=1)
    torch.cuda.synchronize()
    show("printed", True)


@triton.jit
def increment_kernel(x, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets, mask=offsets < count) + 1, mask=offsets < count)


@program
def benchmark_and_graph():
    x = torch.zeros(1000, device="cuda")
    show("measured",
         triton.testing.do_bench(lambda: increment_kernel[(4,)](x, 1000, BLOCK=256), warmup=2, rep=5) > 0)
    x.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        increment_kernel[(4,)](x, 1000, BLOCK=256)
    for _ in range(7):
        graph.replay()
    show("graph", float(x.sum()))


if __name__ == "__main__":
    p.main()
