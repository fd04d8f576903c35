//! nvrtc
// Refused: there is no room for one more parameter.
struct Huge { char bytes[32752]; };
struct Large { char bytes[32000]; };
struct Edge { char bytes[32704]; };
__global__ void full(Huge huge, int* a) { a[blockIdx.x] = huge.bytes[0]; }
__global__ void by_a_little(Edge edge, int* a) { a[blockIdx.x] = edge.bytes[0]; }
__global__ void nearly(Large large, int* a) { a[blockIdx.x] = large.bytes[0]; }
