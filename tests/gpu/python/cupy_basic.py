"""CuPy: kernels compiled at run time, element-wise kernels, random numbers, products, a transform."""
import cupy as cp
import numpy as np

raw = cp.RawKernel(r"""
extern "C" __global__ void polynomial(const float* x, float* y, int n, float a, float b) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] * x[i] + b;
}""", "polynomial")
x = cp.arange(100000, dtype=cp.float32) % 100
y = cp.empty_like(x)
raw((391,), (256,), (x, y, np.int32(x.size), np.float32(3), np.float32(2)))
assert bool((y == 3 * x * x + 2).all())
print("raw kernel:", float(y.sum(dtype=cp.float64)))

module = cp.RawModule(code=r"""
__device__ int scale = 2;
template <typename T> __global__ void times(T* data) { data[threadIdx.x] *= scale; }
""", name_expressions=["times<int>", "times<double>"])
whole = cp.arange(64, dtype=cp.int32)
module.get_function("times<int>")((1,), (64,), (whole,))
scale = cp.ndarray((1,), cp.int32, module.get_global("scale"))
scale[0] = 5
real = cp.arange(64, dtype=cp.float64)
module.get_function("times<double>")((1,), (64,), (real,))
print("module:", int(whole.sum()), float(real.sum()))

squared_difference = cp.ElementwiseKernel("float64 a, float64 b", "float64 c", "c = (a - b) * (a - b)",
                                          "squared_difference")
a = cp.arange(1000, dtype=cp.float64)
print("elementwise:", float(squared_difference(a, a[::-1].copy()).sum()))
norm = cp.ReductionKernel("float64 x", "float64 y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
print(f"reduction: {float(norm(a)):.9g}")

cp.random.seed(11)
uniform = cp.random.random(100000)
print(f"random: {float(uniform.sum()):.9g} "
      f"{float(cp.random.standard_normal(1000, dtype=cp.float64).sum()):.9g}")
print("permutation:", int(cp.sort(cp.random.permutation(5000))[4999]))

left = (cp.arange(300 * 200) % 7).reshape(300, 200).astype(cp.float32)
right = (cp.arange(200 * 250) % 5).reshape(200, 250).astype(cp.float32)
product = left @ right
assert np.array_equal(cp.asnumpy(product), cp.asnumpy(left) @ cp.asnumpy(right))
print("matmul:", float(product.sum(dtype=cp.float64)))

wave = cp.sin(cp.linspace(0, 200, 8192))
spectrum = cp.fft.fft(wave)
print(f"fft: {float(cp.abs(spectrum).max()):.6g} {float(cp.abs(cp.fft.ifft(spectrum) - wave).max()) < 1e-12}")
solution = cp.linalg.solve(cp.eye(50) * 4 + 1, cp.arange(50, dtype=cp.float64))
print(f"solve: {float(solution.sum()):.9g}")

print("sort:", int(cp.argsort(-cp.arange(1000))[0]), "unique:", int(cp.unique(cp.arange(1000) % 37).size))
stream = cp.cuda.Stream(non_blocking=True)
with stream:
    pinned = cp.cuda.alloc_pinned_memory(8000)
    source = np.frombuffer(pinned, np.float64, 1000)
    source[:] = np.arange(1000)
    there = cp.empty(1000)
    there.set(source, stream=stream)
    doubled = there * 2
stream.synchronize()
print("stream:", float(doubled.sum()))
