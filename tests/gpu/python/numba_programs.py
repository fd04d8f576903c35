"""numba-cuda: one theme a program."""
import program as p
from program import program, show

import math

import numpy as np

if not hasattr(np, "row_stack"):   # NumPy 2.5 has dropped a name that numba-cuda 0.30 looks up
    np.row_stack = np.vstack
from numba import cuda, float32, int32

RANDOM = np.random.default_rng(2)


def near(name, ours, reference, tolerance=1e-5):
    error = float(np.abs(np.asarray(ours) - np.asarray(reference)).max())
    assert error <= tolerance, f"{name}: off by {error}"
    show(name, "right")


@program
def vector_kernel():
    @cuda.jit
    def axpy(a, x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] += a * x[i]
    x, y = RANDOM.random(10000), RANDOM.random(10000)
    there = cuda.to_device(y)
    axpy[40, 256](2.5, x, there)
    near("axpy", there.copy_to_host(), y + 2.5 * x)
    near("host array", (lambda z: (axpy[40, 256](1.0, x, z), z)[1])(y.copy()), y + x)


@program
def shared_memory():
    @cuda.jit
    def product(a, b, c):
        left, right = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0)
        for start in range(0, a.shape[1], 16):
            left[tx, ty], right[tx, ty] = a[x, start + ty], b[start + tx, y]
            cuda.syncthreads()
            for k in range(16):
                total += left[tx, k] * right[k, ty]
            cuda.syncthreads()
        c[x, y] = total
    a, b = RANDOM.random((64, 96)).astype(np.float32), RANDOM.random((96, 32)).astype(np.float32)
    c = cuda.device_array((64, 32), np.float32)
    product[(4, 2), (16, 16)](a, b, c)
    near("product", c.copy_to_host(), a @ b, 1e-3)


@program
def atomics():
    @cuda.jit
    def count(keys, bins, most, swapped):
        i = cuda.grid(1)
        if i < keys.size:
            cuda.atomic.add(bins, keys[i], 1)
            cuda.atomic.max(most, 0, keys[i])
            cuda.atomic.cas(swapped, 0, -1, 5)
    keys = RANDOM.integers(0, 20, 5000).astype(np.int32)
    bins, most, swapped = np.zeros(20, np.int32), np.zeros(1, np.int32), np.full(1, -1, np.int32)
    count[20, 256](keys, bins, most, swapped)
    near("count", bins, np.bincount(keys, minlength=20))
    show("most", int(most[0]), int(swapped[0]))


@program
def cooperative_groups():
    @cuda.jit
    def steps(x):
        grid = cuda.cg.this_grid()
        column = cuda.grid(1)
        for row in range(1, x.shape[0]):
            x[row, column] = x[row - 1, x.shape[1] - 1 - column] + 1
            grid.sync()
    x = np.zeros((10, 1024), np.int32)
    steps[8, 128](x)
    show("rows", x[:, 0].tolist())


@program
def universal_functions():
    from numba import guvectorize, vectorize

    @vectorize(["float64(float64, float64)"], target="cuda")
    def length(x, y):
        return math.sqrt(x * x + y * y)

    @guvectorize(["void(float64[:], float64[:])"], "(n)->(n)", target="cuda")
    def running(row, out):
        total = 0.0
        for i in range(row.shape[0]):
            total += row[i]
            out[i] = total
    x, y = RANDOM.random((30, 20)), RANDOM.random((30, 20))
    near("vectorize", length(x, y), np.hypot(x, y))
    near("guvectorize", running(x), x.cumsum(axis=1))


@program
def memory_kinds():
    @cuda.jit
    def double(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= 2
    stream = cuda.stream()
    pinned, mapped = cuda.pinned_array(1000, np.float32), cuda.mapped_array(1000, np.float32)
    pinned[:], mapped[:] = 3, 4
    there = cuda.to_device(pinned, stream=stream)
    double[4, 256, stream](there)
    double[4, 256, stream](mapped)
    there.copy_to_host(pinned, stream=stream)
    stream.synchronize()
    show("pinned", float(pinned.sum()), "mapped", float(mapped.sum()))
    with cuda.defer_cleanup():
        show("information", 0 < cuda.current_context().get_memory_info().free)


@program
def managed_memory():
    @cuda.jit
    def add(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += i
    x = cuda.managed_array(1000, np.int64)
    x[:] = 1
    add[4, 256](x)
    cuda.synchronize()
    show("managed", int(x.sum()))


@program
def events_and_streams():
    @cuda.jit
    def fill(x, value):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = value
    streams = [cuda.stream() for _ in range(4)]
    start, end = cuda.event(), cuda.event()
    start.record()
    arrays = [cuda.device_array(5000, np.int32, stream=stream) for stream in streams]
    for i, (stream, array) in enumerate(zip(streams, arrays)):
        fill[20, 256, stream](array, i)
        stream.synchronize()
    end.record()
    end.synchronize()
    show("sums", [int(array.copy_to_host().sum()) for array in arrays],
         cuda.event_elapsed_time(start, end) >= 0)


@program
def warp_functions():
    @cuda.jit
    def warp(x, sums, votes):
        t = cuda.threadIdx.x
        value = x[t]
        for offset in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(0xffffffff, value, offset)
        votes[t] = cuda.popc(cuda.ballot_sync(0xffffffff, x[t] > 10))
        if t == 0:
            sums[0] = value
    x, sums, votes = np.arange(32, dtype=np.int32), np.zeros(1, np.int32), np.zeros(32, np.int32)
    warp[1, 32](x, sums, votes)
    show("warp", int(sums[0]), votes.tolist()[:3])


@program
def reduction():
    add = cuda.reduce(lambda a, b: a + b)
    x = RANDOM.random(10000)
    near("sum", add(x), x.sum(), 1e-6)


@program
def random_numbers():
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float64

    @cuda.jit
    def draw(states, out):
        i = cuda.grid(1)
        total = 0.0
        for _ in range(10):
            total += xoroshiro128p_uniform_float64(states, i)
        out[i] = total
    states, out = create_xoroshiro128p_states(256, seed=4), np.zeros(256)
    draw[2, 128](states, out)
    show("uniform", float(out.sum()))


@program
def device_functions():
    @cuda.jit(device=True)
    def escape(x, y):
        zx, zy = 0.0, 0.0
        for i in range(50):
            zx, zy = zx * zx - zy * zy + x, 2 * zx * zy + y
            if zx * zx + zy * zy > 4:
                return i
        return 50

    @cuda.jit
    def picture(image):
        i, j = cuda.grid(2)
        if i < image.shape[0] and j < image.shape[1]:
            image[i, j] = escape(i / image.shape[0] * 3 - 2, j / image.shape[1] * 2 - 1)
    image = np.zeros((60, 40), np.int32)
    picture[(4, 3), (16, 16)](image)
    show("steps", int(image.sum()))


@program
def local_and_constant():
    table = np.arange(16, dtype=np.float32)

    @cuda.jit
    def lookup(out):
        constant, local = cuda.const.array_like(table), cuda.local.array(4, int32)
        i = cuda.grid(1)
        for k in range(4):
            local[k] = i + k
        out[i] = constant[i % 16] + local[3]
    out = np.zeros(64, np.float32)
    lookup[2, 32](out)
    near("sum", out, np.arange(64) % 16 + np.arange(64) + 3)


if __name__ == "__main__":
    p.main()
