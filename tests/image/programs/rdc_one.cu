// Relocatable device code of two files: a kernel here calls a function there, and launches a kernel of there.
__device__ int helper(int x);
__global__ void second(int* x, float y);

__global__ void first(int* x) { x[0] = helper(x[1]); }

int main() {
    first<<<1, 1>>>(nullptr);
    second<<<1, 1>>>(nullptr, 1);
}
