//! nvrtc
// NVRTC knows std::initializer_list without an include; CuPy's arrays rely on it.
struct Index { int v[2]; __device__ Index(std::initializer_list<int> list) { int i = 0; for (int each : list) v[i++] = each; } };
extern "C" __global__ void k(int* out) { Index at{1, 2}; out[blockIdx.x] = at.v[1]; }
