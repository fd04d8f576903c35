// Indirect and virtual calls, recursion, switches, large structs, local arrays, variable arguments.
#include <cstdio>

struct Shape {
    __device__ virtual ~Shape() {}
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float side;
    __device__ explicit Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
    float radius;
    __device__ explicit Circle(float r) : radius(r) {}
    __device__ float area() const override { return 3.14159f * radius * radius; }
};

typedef int (*Binary)(int, int);
__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ Binary operations[2] = {plus, times};
__constant__ Binary constant_operations[2] = {times, plus};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

struct Large {
    double values[9];
    char tail;
};
__device__ __noinline__ Large rotate(Large in, int by) {
    Large out = in;
    for (int i = 0; i < 9; ++i) out.values[i] = in.values[(i + by) % 9];
    return out;
}

__device__ __noinline__ int choose(int which, int x) {
    switch (which) {
        case 0:
            return x + 7;
        case 1:
            return x * x;
        case 2:
            return x / 3;
        case 3:
            return x ^ 0x55;
        case 4:
            return __popc(x);
        case 5:
            return __clz(x) + x * 11;
        case 6:
            return x % 13;
        case 7:
            return x << 3;
        case 8:
            return x - 1;
        default:
            return -x;
    }
}

__global__ void indirect(int* out, int which, Large large) {
    int index = threadIdx.x;
    out[index] =
        operations[which](index, 3) + constant_operations[1 - which](index, 5) + fibonacci(index % 10);
    out[index] += choose(which, out[index]) + static_cast<int>(rotate(large, index).values[2]);
}

__global__ void virtual_calls(float* out, int n) {
    Shape* shape = n & 1 ? static_cast<Shape*>(new Square(n)) : new Circle(n);
    out[threadIdx.x] = shape->area();
    delete shape;
}

__global__ void local_arrays(int* out, const int* index, int n) {
    int table[64];
    for (int i = 0; i < 64; ++i) table[i] = index[i] * n;
    out[threadIdx.x] = table[index[threadIdx.x] & 63];
    if (n < 0) printf("n=%d of %s %f %llu\n", n, "a string", 1.5 * n, 1ull << n);
    if (n == 12345) __trap();
}

template <typename T, int N>
struct Vector {
    T v[N];
    __device__ T sum() const {
        T total{};
        for (int i = 0; i < N; ++i) total += v[i];
        return total;
    }
};
template <typename T, int N>
__global__ void sums(Vector<T, N> in, T* out) {
    *out = in.sum();
}
template __global__ void sums<double, 5>(Vector<double, 5>, double*);
template __global__ void sums<short, 3>(Vector<short, 3>, short*);
template __global__ void sums<unsigned long long, 17>(Vector<unsigned long long, 17>, unsigned long long*);

__global__ void __launch_bounds__(256, 2) bounded(float* out) { out[threadIdx.x] = sqrtf(out[threadIdx.x]); }
