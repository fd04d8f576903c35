// Variables in every space, with initialisers of every kind.
__device__ int plain, initialised = 7, array[4][3] = {{1, 2, 3}, {4}};
__device__ double doubles[3] = {1.0, -2.5, 1e300};
__device__ float floats[] = {0.5f, -1.25f};
__device__ const char* text = "a string, \"quoted\"\n";
__device__ int* inside = &array[1][1];
__constant__ int constants[5] = {5, 4, 3, 2, 1};
__constant__ struct {
    char c;
    double d;
    short s[3];
} mixed = {'x', 2.5, {1, 2, 3}};
__managed__ int managed = 3;
__device__ __align__(16) unsigned char aligned_bytes[33] = {1, 2, 3};
__device__ volatile int flag;
static __device__ long long hidden = -5;

__device__ void target(int* x) { *x += 1; }
struct Node {
    int value;
    Node* next;
    void (*act)(int*);
};
__device__ Node tail = {2, nullptr, target};
__device__ Node head = {1, &tail, nullptr};

__device__ int& counter() {
    static int count = 5;
    return ++count, count;
}

__global__ void use(int* out, int n) {
    __shared__ int fixed[64];
    extern __shared__ double dynamic[];
    fixed[threadIdx.x] = constants[n] + mixed.s[n % 3] + array[n][1] + plain;
    dynamic[threadIdx.x] = doubles[n] + floats[n & 1] + mixed.d;
    __syncthreads();
    Node* node = &head;
    while (node) {
        if (node->act) node->act(out);
        node = node->next;
    }
    flag = 1;
    while (flag == n) {
    }
    out[0] = fixed[n] + static_cast<int>(dynamic[n]) + text[n] + *inside + managed + aligned_bytes[n] +
             hidden + counter();
    hidden = n;
    initialised = n;
}
