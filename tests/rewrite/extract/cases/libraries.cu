//! -I/usr/local/cuda/include
// CUDA's headers stay includes; the host's library has stand-ins.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>
namespace cg = cooperative_groups;
using std::uint8_t;
__global__ void mean(__half* a, uint8_t* bytes, std::int64_t n) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    float value = std::sqrt(__half2float(a[warp.thread_rank()])) + std::numeric_limits<uint8_t>::max();
    value = std::max(value, INFINITY) + std::fabs(value);
    a[0] = __float2half(fminf(value, float(n)));
    bytes[0] = 1;
}
std::vector<int> host;
