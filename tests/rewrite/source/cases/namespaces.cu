//! nvrtc
namespace outer {
struct Cell { int value; };
inline namespace v1 { __global__ void versioned(Cell* a) { a[blockIdx.x].value = 1; } }
namespace inner::deepest { __global__ void nested(Cell a, int* b) { b[blockIdx.x] = a.value; } }
__global__ void declared(Cell* a);
}
// Defined outside of its namespace: its body belongs there too.
__global__ void outer::declared(Cell* a) { a[blockIdx.x].value = 2; }

// Twin: of the same name in another namespace, and stays as it is.
namespace other { __global__ void declared(unsigned long long* a); }
__global__ void other::declared(unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); }
