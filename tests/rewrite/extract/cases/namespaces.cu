//!
// Namespaces, language linkage, using: as they were, around what is left.
namespace a {
namespace b {
inline namespace v2 {
struct Point { int x, y; };
__device__ int length(Point p) { return p.x + p.y; }
}
__device__ int unused(int x) { return x; }
}
namespace {
__device__ int hidden;
__global__ void kernel(b::Point* p, int* out) { out[blockIdx.x] = length(p[blockIdx.x]) + hidden; }
}
namespace empty { void host(); }
}
namespace short_name = a::b;
using namespace a;
using namespace a::empty;
using a::b::Point;
extern "C" {
__device__ int c_helper(int x) { return x; }
__global__ void c_kernel(Point* p) { p->x = c_helper(short_name::length(*p)); }
}
extern "C" __global__ void c_alone(int* p) { *p = 1; }
static __global__ void local(int* p) { *p = 2; }
