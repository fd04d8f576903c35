//! nvrtc
// Refused: it is what this rewriter writes.
namespace smt { struct Launch { void* control; unsigned long long first; unsigned start, total, grid[3], flags, id, unused; }; }
__global__ void smt_k(int* a, smt::Launch launch) { a[blockIdx.x] = launch.total; }
