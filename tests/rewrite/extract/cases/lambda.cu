//! --extended-lambda
// Only nvcc can name what it makes of a lambda.
template <class F> __global__ void apply(F f, int* a) { a[blockIdx.x] = f(a[blockIdx.x]); }
void start(int* a) { apply<<<1, 1>>>([] __device__(int x) { return 2 * x; }, a); }
