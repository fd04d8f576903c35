//!
// Variables of the device are all there, of the host's constants those that kernels use.
#include <cstddef>
struct Point { float x, y; } origin, *unused_pointer;
enum class Color { kRed, kGreen };
enum { kSize = 8, kOther };
typedef struct { int a; } Legacy;
using Real = float;
#pragma pack(push, 1)
struct Packed { char a; int b; };
#pragma pack(pop)
__constant__ Real table[kSize];
__device__ unsigned long long counter, spare;
static __device__ Legacy legacy;
namespace n { static __constant__ Point center; }
__device__ const Packed packed = {1, 2};
__managed__ int managed;
extern __shared__ float buffer[];
static_assert(sizeof(Packed) == 5, "");
__global__ void use(float* a, Color color) {
    static __device__ int calls;
    buffer[threadIdx.x] = table[threadIdx.x] + n::center.x;
    if (color == Color::kGreen) a[0] = buffer[0] + packed.b + managed + legacy.a + offsetof(Point, y) + calls++;
    atomicAdd(&counter, 1ull);
}
