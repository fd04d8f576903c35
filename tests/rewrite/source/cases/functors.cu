//! nvcc --extended-lambda
// What a kernel is given to call: an object, or a lambda of the host's function.
struct Add {
    int by;
    __device__ int operator()(int i) const { return blockIdx.x + by + i; }
};
template <class F> __global__ void apply(F f, int* a) { a[blockIdx.x] = f(threadIdx.x); }
// Twin: stays as it is, whatever it is given.
template <class F> __global__ void stays(F f, unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); a[1] = sizeof(f); }
int main() {
    stays<<<1, 1>>>(Add{1}, nullptr);
    stays<<<1, 1>>>([] __device__(int i) { return i; }, nullptr);
    const int by = 3;
    apply<<<1, 1>>>(Add{by}, nullptr);
    apply<<<1, 1>>>([=] __device__(int i) { return i + by + gridDim.x; }, nullptr);
}
