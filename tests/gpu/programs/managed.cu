// Managed memory: the host and the device see each other's writes, with and without hints.
#include "program.h"

__global__ void advance(int* data, int count, int step) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = data[i] * 3 + step;
}

struct Node {
    int value;
    Node* next;
};

__global__ void walk(Node* node, long long* sum) {
    for (; node != nullptr; node = node->next) {
        *sum += node->value;
        node->value = -node->value;
    }
}

int main() {
    Result result;
    int device = 0;
    CHECK(cudaGetDevice(&device));
    const int count = 3 << 18;
    int* data;
    CHECK(cudaMallocManaged(&data, count * sizeof(int)));
    for (int i = 0; i < count; ++i) data[i] = i;
    advance<<<(count + 255) / 256, 256>>>(data, count, 1);
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int i = 0; i < count; ++i) right &= data[i] == i * 3 + 1;
    result.expect(right, "device after host");

    // The host writes again, then hints, then the device.
    for (int i = 0; i < count; ++i) data[i] = i % 1000;
    cudaMemLocation place = {};
    place.type = cudaMemLocationTypeDevice;
    place.id = device;
    CHECK(cudaMemAdvise(data, count * sizeof(int), cudaMemAdviseSetPreferredLocation, place));
    CHECK(cudaMemPrefetchAsync(data, count * sizeof(int), place, 0, cudaStreamPerThread));
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    for (int round = 0; round < 3; ++round) advance<<<(count + 255) / 256, 256>>>(data, count, round);
    CHECK(cudaDeviceSynchronize());
    right = true;
    for (int i = 0; i < count; ++i) right &= data[i] == (((i % 1000) * 3 + 0) * 3 + 1) * 3 + 2;
    result.expect(right, "device after hints");
    result.fold(data, count * sizeof(int));

    cudaPointerAttributes attributes = {};
    CHECK(cudaPointerGetAttributes(&attributes, data + 5));
    std::printf("memory type %d, same pointer on the device %d\n", attributes.type,
                attributes.devicePointer == static_cast<void*>(data + 5));

    // A linked list: pointers mean the same on both sides.
    Node* nodes;
    long long* sum;
    CHECK(cudaMallocManaged(&nodes, 100 * sizeof(Node), cudaMemAttachGlobal));
    CHECK(cudaMallocManaged(&sum, sizeof *sum));
    *sum = 0;
    for (int i = 0; i < 100; ++i) nodes[i] = {i * i, i < 99 ? &nodes[i + 1] : nullptr};
    walk<<<1, 1>>>(nodes, sum);
    CHECK(cudaDeviceSynchronize());
    std::printf("list: %lld, last %d\n", *sum, nodes[99].value);
    result.expect(*sum == 328350 && nodes[99].value == -9801, "list");

    // Copies and memsets on managed pointers.
    int* plain;
    CHECK(cudaMalloc(&plain, 1024));
    CHECK(cudaMemcpy(plain, data, 1024, cudaMemcpyDefault));
    CHECK(cudaMemset(data, 0, 1024));
    CHECK(cudaMemcpy(data + 512, plain, 1024, cudaMemcpyDefault));
    CHECK(cudaDeviceSynchronize());
    result.expect(data[0] == 0 && data[255] == 0 && data[512 + 7] == ((7 * 3) * 3 + 1) * 3 + 2, "copies");
    result.fold(data, 4096);
    CHECK(cudaFree(plain));
    CHECK(cudaFree(nodes));
    CHECK(cudaFree(sum));
    CHECK(cudaFree(data));
    return result.finish();
}
