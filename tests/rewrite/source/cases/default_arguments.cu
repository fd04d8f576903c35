//! nvrtc
// An argument that is not written is read where the caller is; a member's initializer, in the constructor.
__device__ int place(int at = blockIdx.x) { return at; }
struct Cursor {
    int at = gridDim.x;
    int from;
    __device__ Cursor() : from(blockIdx.y) {}
};
__global__ void fill(int* a, int value = 3, int* = nullptr) { a[place()] = value; }
__global__ void walk(int* a) { Cursor cursor; a[cursor.at] = cursor.from; }
