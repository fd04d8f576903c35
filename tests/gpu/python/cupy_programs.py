"""CuPy: one theme a program."""
import program as p
from program import program, show

p.environment({"cub": {"CUPY_ACCELERATORS": "cub"}, "no_accelerators": {"CUPY_ACCELERATORS": ""},
               "per_thread_stream": {"CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}})
import cupy as cp
import cupyx
import numpy as np

RANDOM = np.random.default_rng(3)


def host(*shape):
    return RANDOM.standard_normal(shape)


def near(name, ours, reference, tolerance=1e-6):
    error = float(np.abs(cp.asnumpy(ours) - cp.asnumpy(reference)).max())
    assert error <= tolerance, f"{name}: off by {error}"
    show(name, "right")


@program
def elementwise():
    a, b = host(1000), host(1000)
    x, y = cp.asarray(a), cp.asarray(b)
    kernel = cp.ElementwiseKernel("T x, T y, raw T z", "T out", "out = x * y + z[i % 10]", "mixed")
    near("kernel", kernel(x, y, x[:10].copy()), a * b + np.tile(a[:10], 100))
    for name in ("exp", "arctan2", "hypot", "floor", "logaddexp"):
        ours, theirs = getattr(cp, name), getattr(np, name)
        near(name, ours(x, y) if ours.nin == 2 else ours(x), theirs(a, b) if theirs.nin == 2 else theirs(a))
    near("where", cp.where(x > 0, x, y), np.where(a > 0, a, b))
    near("vectorize", cp.vectorize(lambda v: v * v + 1 if v > 0 else v)(x), np.where(a > 0, a * a + 1, a))


def reductions_of(a):
    x = cp.asarray(a)
    for name in ("sum", "max", "argmin", "mean", "std", "cumsum", "prod"):
        near(name, getattr(cp, name)(x, axis=1), getattr(np, name)(a, axis=1))
    near("all", x.sum(), a.sum())
    kernel = cp.ReductionKernel("T x, T y", "T out", "x * y", "a + b", "out = sqrt(a)", "0", "length")
    near("kernel", kernel(x, x, axis=1), np.sqrt((a * a).sum(axis=1)))


@program
def reductions():
    reductions_of(host(64, 200))


@program
def cub():
    reductions_of(host(64, 200))


@program
def no_accelerators():
    reductions_of(host(64, 200))


@program
def raw_kernels():
    module = cp.RawModule(code=r"""
    __constant__ float factors[4];
    extern __shared__ float shared[];
    extern "C" __global__ void blockwise(const float* x, float* y) {
        shared[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
        __syncthreads();
        y[blockIdx.x * blockDim.x + threadIdx.x] =
            shared[blockDim.x - 1 - threadIdx.x] * factors[blockIdx.x % 4];
    }""", options=("--std=c++17",))
    factors = cp.ndarray((4,), cp.float32, module.get_global("factors"))
    factors[:] = cp.arange(1, 5)
    x = cp.arange(1024, dtype=cp.float32)
    y = cp.empty_like(x)
    kernel = module.get_function("blockwise")
    kernel((8,), (128,), (x, y), shared_mem=512)
    near("reversed", y.reshape(8, 128), x.reshape(8, 128)[:, ::-1] * factors[cp.arange(8) % 4][:, None])
    show("attributes", kernel.max_threads_per_block, kernel.const_size_bytes >= 0, kernel.num_regs > 0)


@program
def cooperative_kernel():
    kernel = cp.RawKernel(r"""
    #include <cooperative_groups.h>
    extern "C" __global__ void twice(int* x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] += 1;
        cooperative_groups::this_grid().sync();
        if (i < n) x[i] += x[n - 1 - i] > 1000000;
    }""", "twice", enable_cooperative_groups=True)
    x = cp.arange(2048, dtype=cp.int32)
    kernel((8,), (256,), (x, np.int32(2048)))
    near("grid barrier", x, cp.arange(1, 2049))


@cp.fuse()
def fused_elementwise(x, y):
    return cp.sqrt(cp.abs(x * y)) + cp.sin(x)


@cp.fuse()
def fused_reduction(x, y):
    return cp.sum(x * y + 1, axis=1)


@cp.fuse()
def fused_several(x):
    return cp.sqrt(cp.sum(x * x, axis=1)) + cp.amax(x, axis=1) * cp.sum(x, axis=1)


@program
def fuse():
    a, b = host(40, 64), host(40, 64)
    x, y = cp.asarray(a), cp.asarray(b)
    near("elementwise", fused_elementwise(x, y), np.sqrt(np.abs(a * b)) + np.sin(a))
    near("reduction", fused_reduction(x, y), (a * b + 1).sum(axis=1))


@program
def fuse_several_reductions():
    a = host(40, 64)
    near("three", fused_several(cp.asarray(a)), np.sqrt((a * a).sum(axis=1)) + a.max(axis=1) * a.sum(axis=1))


@program
def jit_kernels():
    from cupyx import jit

    @jit.rawkernel()
    def scaled(x, y, size):
        start = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
        for i in range(start, size, jit.gridDim.x * jit.blockDim.x):
            y[i] = x[i] * 2 + 1
    x = cp.arange(5000, dtype=cp.float32)
    y = cp.zeros_like(x)
    scaled((16,), (128,), (x, y, cp.uint32(5000)))
    near("grid stride", y, x * 2 + 1)


@program
def jit_shared():
    from cupyx import jit

    @jit.rawkernel()
    def block_sums(x, out):
        shared = jit.shared_memory(cp.float32, 256)
        t = jit.threadIdx.x
        shared[t] = x[jit.blockIdx.x * 256 + t]
        jit.syncthreads()
        width = jit.blockDim.x // 2
        while width > 0:
            if t < width:
                shared[t] = shared[t] + shared[t + width]
            jit.syncthreads()
            width = width // 2
        if t == 0:
            out[jit.blockIdx.x] = shared[0]

    @jit.rawkernel()
    def counted(keys, bins, size):
        i = jit.grid(1)
        if i < size:
            jit.atomic_add(bins, keys[i], 1)

    @jit.rawkernel()
    def shuffled(x, y):
        y[jit.threadIdx.x] = jit.shfl_xor_sync(0xffffffff, x[jit.threadIdx.x], 5)
    x = cp.arange(4096, dtype=cp.float32) % 10
    out = cp.zeros(16, dtype=cp.float32)
    block_sums[16, 256](x, out)
    near("block sums", out, x.reshape(16, 256).sum(axis=1), 1e-3)
    keys, bins = cp.arange(3000, dtype=cp.int32) % 13, cp.zeros(13, dtype=cp.int32)
    counted[12, 256](keys, bins, 3000)
    near("atomics", bins, cp.bincount(keys))
    y = cp.zeros(32, dtype=cp.float32)
    shuffled[1, 32](x[:32].copy(), y)
    near("shuffle", y, x[:32][np.arange(32) ^ 5])


@program
def jit_libraries():
    from cupyx import jit

    @jit.rawkernel()
    def row_sums(x, y):
        Reduce = jit.cub.WarpReduce[cp.int32]
        storage = jit.shared_memory(dtype=Reduce.TempStorage, size=1)
        i, j = jit.blockIdx.x, jit.threadIdx.x
        value = x[i, j]
        total = Reduce(storage[0]).Reduce(value, jit.cub.Sum())
        if j == 0:
            y[i] = total
    x, y = cp.arange(320, dtype=cp.int32).reshape(10, 32), cp.zeros(10, dtype=cp.int32)
    row_sums[10, 32](x, y)
    near("row sums", y, x.sum(axis=1))


@program
def sparse_matrices():
    import cupyx.scipy.sparse as sparse
    import scipy.sparse
    ours = scipy.sparse.random(200, 200, 0.05, "csr", random_state=1) + scipy.sparse.eye(200) * 10
    theirs, right = ours.tocsr(), host(200, 8)
    a = sparse.csr_matrix(theirs)
    near("product", a @ cp.asarray(right), theirs @ right)
    near("sparse product", (a @ a).toarray(), (theirs @ theirs).toarray())
    near("transpose", a.T.tocsr().toarray(), theirs.T.toarray())
    near("coo", a.tocoo().tocsc().toarray(), theirs.toarray())
    near("sum", a.sum(axis=0), theirs.sum(axis=0))


@program
def sparse_solvers():
    import cupyx.scipy.sparse as sparse
    from cupyx.scipy.sparse import linalg
    import scipy.sparse
    ours = scipy.sparse.random(100, 100, 0.05, "csr", random_state=2)
    ours = (ours @ ours.T + 10 * scipy.sparse.eye(100)).tocsr()
    a, b = sparse.csr_matrix(ours), cp.asarray(host(100))
    for name in ("cg", "gmres", "minres"):
        solution = getattr(linalg, name)(a, b)[0]
        near(name, a @ solution, b, 1e-2)
    near("spsolve", a @ linalg.spsolve(a, b), b, 1e-6)
    near("eigsh", cp.sort(linalg.eigsh(a, k=3, return_eigenvectors=False)),
         np.sort(np.linalg.eigvalsh(ours.toarray()))[-3:], 1e-3)


@program
def fourier():
    a = host(12, 200)
    x = cp.asarray(a)
    near("fft", cp.fft.fft(x), np.fft.fft(a))
    near("nd", cp.fft.fftn(x), np.fft.fftn(a), 1e-5)
    near("real", cp.fft.irfft(cp.fft.rfft(x)), a)
    from cupyx.scipy import fft
    plan = fft.get_fft_plan(x.astype(cp.complex128))
    near("plan", fft.fft2(x.astype(cp.complex128), plan=plan), np.fft.fft2(a), 1e-5)
    near("dct", fft.idct(fft.dct(x)), a)


@program
def graphs():
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        x = cp.arange(1000, dtype=cp.float32)
        out = cp.zeros_like(x)
        cp.multiply(x, 2, out=out)
        stream.begin_capture()
        cp.multiply(x, 2, out=out)
        cp.add(out, 1, out=out)
        graph = stream.end_capture()
        for i in range(5):
            x.fill(i)
            graph.launch(stream)
        stream.synchronize()
    show("graph", float(out.sum()))


@program
def streams_events():
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(4)]
    start, end, results = cp.cuda.Event(), cp.cuda.Event(), []
    start.record()
    for i, stream in enumerate(streams):
        stream.wait_event(start)
        with stream:
            results.append((cp.full((200, 200), i + 1.0) @ cp.ones((200, 200))).sum())
        end.record(stream)
    for stream in streams:
        stream.synchronize()
    end.synchronize()
    show("sums", *[float(r) for r in results])
    seen = []
    streams[0].launch_host_func(lambda _: seen.append(1), None)
    streams[0].synchronize()
    show("host function", seen, cp.cuda.get_elapsed_time(start, end) >= 0)


@program
def per_thread_stream():
    import threading
    results = [None] * 4

    def work(i):
        results[i] = float((cp.arange(1000, dtype=cp.float64) * i).sum())
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    show("sums", *results)


@program
def pinned_memory():
    pool = cp.cuda.PinnedMemoryPool()
    cp.cuda.set_pinned_memory_allocator(pool.malloc)
    pinned = cupyx.empty_pinned(1 << 18, dtype=np.float32)
    pinned[:] = np.arange(1 << 18)
    stream = cp.cuda.Stream(non_blocking=True)
    x = cp.empty(1 << 18, dtype=cp.float32)
    x.set(pinned, stream=stream)
    with stream:
        y = x * 2
    back = cupyx.empty_pinned(1 << 18, dtype=np.float32)
    y.get(stream=stream, out=back)
    stream.synchronize()
    show("copied", bool((back == pinned * 2).all()), pool.n_free_blocks() >= 0)
    show("limits", cp.get_default_memory_pool().used_bytes() > 0)


@program
def managed_memory():
    cp.cuda.set_allocator(cp.cuda.MemoryPool(cp.cuda.malloc_managed).malloc)
    x = cp.arange(100000, dtype=cp.float64)
    show("managed", float((x * x).sum()), float(cp.sort(-x)[0]))
    near("product", x[:100].reshape(10, 10) @ x[:100].reshape(10, 10),
         (np.arange(100.0).reshape(10, 10)) @ np.arange(100.0).reshape(10, 10))


@program
def async_pool():
    cp.cuda.set_allocator(cp.cuda.MemoryAsyncPool().malloc)
    held = [cp.full(1 << 16, i, dtype=cp.int64) for i in range(20)]
    del held[::2]
    held += [cp.full(1 << 17, i, dtype=cp.int64) for i in range(10)]
    show("sum", sum(int(h.sum()) for h in held))
    cp.cuda.set_allocator(cp.cuda.malloc_async)
    show("direct", float(cp.ones(1000).sum()))


@program
def pool_state():
    pool = cp.get_default_memory_pool()
    pool.set_limit(size=64 << 20)
    block = cp.zeros(1 << 20, dtype=cp.uint8)
    try:
        cp.zeros(1 << 27, dtype=cp.uint8)
    except cp.cuda.memory.OutOfMemoryError:
        show("limit", "kept")
    del block
    pool.free_all_blocks()
    show("freed", pool.used_bytes(), pool.total_bytes())
    free, whole = cp.cuda.runtime.memGetInfo()
    show("information", 0 < free <= whole)


@program
def linear_algebra():
    a, b = host(50, 50), host(50, 4)
    spd = a @ a.T + 50 * np.eye(50)
    near("solve", cp.linalg.solve(cp.asarray(spd), cp.asarray(b)), np.linalg.solve(spd, b))
    near("cholesky", cp.linalg.cholesky(cp.asarray(spd)), np.linalg.cholesky(spd))
    near("svd", cp.linalg.svd(cp.asarray(a), compute_uv=False), np.linalg.svd(a, compute_uv=False))
    near("eigh", cp.linalg.eigvalsh(cp.asarray(spd)), np.linalg.eigvalsh(spd))
    near("qr", cp.abs(cp.linalg.qr(cp.asarray(a))[1]), np.abs(np.linalg.qr(a)[1]))
    near("batched", cp.linalg.inv(cp.asarray(np.stack([spd, spd * 2]))),
         np.linalg.inv(np.stack([spd, spd * 2])))
    near("least squares", cp.linalg.lstsq(cp.asarray(a), cp.asarray(b), rcond=None)[0],
         np.linalg.lstsq(a, b, rcond=None)[0])
    from cupyx.scipy import linalg
    near("lu", linalg.lu_solve(linalg.lu_factor(cp.asarray(spd)), cp.asarray(b)), np.linalg.solve(spd, b))
    near("einsum", cp.einsum("ij,kj->ik", cp.asarray(a), cp.asarray(a)), a @ a.T)
    near("half", cp.asarray(a, dtype=cp.float16) @ cp.asarray(b, dtype=cp.float16), a @ b, 0.5)


@program
def random_numbers():
    generator = cp.random.Generator(cp.random.XORWOW(seed=5))
    show("generator", float(generator.random(1000).sum()), int(generator.integers(0, 100, 1000).sum()))
    for kind in (cp.random.MRG32k3a, cp.random.Philox4x3210):
        show(kind.__name__, float(cp.random.Generator(kind(seed=6)).standard_normal(1000).sum()))
    cp.random.seed(4)
    show("legacy", float(cp.random.gamma(2.0, size=1000).sum()), int(cp.random.poisson(3.0, 1000).sum()),
         int(cp.random.choice(100, 10).sum()))


@program
def sorting():
    keys = RANDOM.integers(0, 1000, 5000)
    there = cp.asarray(keys)
    near("sort", cp.sort(there), np.sort(keys))
    near("argsort", there[cp.argsort(there)], np.sort(keys))
    near("lexsort", cp.lexsort(cp.stack([there, there % 7])), np.lexsort(np.stack([keys, keys % 7])))
    near("unique", cp.unique(there), np.unique(keys))
    near("search", cp.searchsorted(cp.arange(0, 1000, 10), there),
         np.searchsorted(np.arange(0, 1000, 10), keys))
    near("partition", cp.partition(there, 100)[100], np.sort(keys)[100])
    near("histogram", cp.histogram(there, 20)[0], np.histogram(keys, 20)[0])
    near("nonzero", cp.flatnonzero(there > 500), np.flatnonzero(keys > 500))


@program
def textures():
    from cupy.cuda import runtime, texture
    channel = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    array = texture.CUDAarray(channel, 64, 32)
    data = cp.arange(64 * 32, dtype=cp.float32).reshape(32, 64)
    array.copy_from(data)
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    kind = texture.TextureDescriptor((runtime.cudaAddressModeClamp,) * 2, runtime.cudaFilterModePoint,
                                     runtime.cudaReadModeElementType)
    sampler = texture.TextureObject(resource, kind)
    kernel = cp.RawKernel(r"""
    extern "C" __global__ void read(float* out, cudaTextureObject_t image, int width, int height) {
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
        if (x < width && y < height) out[y * width + x] = tex2D<float>(image, x + 0.5f, y + 0.5f) + 1;
    }""", "read")
    out = cp.zeros_like(data)
    kernel((4, 2), (16, 16), (out, sampler, np.int32(64), np.int32(32)))
    near("read", out, data + 1)


@program
def scientific():
    from cupyx.scipy import ndimage, signal, special
    import scipy.ndimage
    import scipy.signal
    import scipy.special
    a = host(40, 40)
    x = cp.asarray(a)
    near("gaussian", ndimage.gaussian_filter(x, 2), scipy.ndimage.gaussian_filter(a, 2))
    near("rotate", ndimage.rotate(x, 30, order=1), scipy.ndimage.rotate(a, 30, order=1))
    near("label", ndimage.label(x > 0)[1], scipy.ndimage.label(a > 0)[1])
    near("convolve", signal.fftconvolve(x, x), scipy.signal.fftconvolve(a, a), 1e-5)
    near("gamma", special.gammaln(cp.abs(x) + 1), scipy.special.gammaln(np.abs(a) + 1))
    near("bessel", special.j0(x), scipy.special.j0(a))


@program
def shared_with_torch():
    import torch
    x = cp.arange(1000, dtype=cp.float32)
    there = torch.from_dlpack(x)
    there *= 2
    torch.cuda.synchronize()
    show("seen by both", float(x.sum()), float(cp.from_dlpack(there + 1).sum()))


@program
def thrust_and_nvrtc():
    kernel = cp.RawKernel(r"""
    #include <cub/block/block_reduce.cuh>
    extern "C" __global__ void sums(const float* x, float* out) {
        typedef cub::BlockReduce<float, 128> Reduce;
        __shared__ typename Reduce::TempStorage storage;
        float value = Reduce(storage).Sum(x[blockIdx.x * 128 + threadIdx.x]);
        if (threadIdx.x == 0) out[blockIdx.x] = value;
    }""", "sums", options=("--std=c++17",))
    x, out = cp.arange(1280, dtype=cp.float32), cp.zeros(10, dtype=cp.float32)
    kernel((10,), (128,), (x, out))
    near("block sums", out, x.reshape(10, 128).sum(axis=1), 1)


if __name__ == "__main__":
    p.main()
