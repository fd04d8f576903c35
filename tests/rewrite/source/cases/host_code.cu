//! nvcc
// The host's side is left alone; what it launches is wanted.
#include <cstdio>
#include <vector>
template <class T> __global__ void scale(T* a, T by) { a[blockIdx.x] *= by; }
template <class T> void start(T* a, int n) { scale<<<n, 1>>>(a, T(2)); }
int main() {
    std::vector<float> values(3);
    start(values.data(), 3);
    scale<int><<<1, 1>>>(nullptr, 2);
    std::printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
