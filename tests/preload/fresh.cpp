// Memory that a tenant gets for the first time reads as zeros, and leaves full of ones, for the next.
#include <algorithm>
#include <vector>

#include "tests/preload/program.h"

int main() {
    preload::start();
    for (const size_t bytes : {size_t{1} << 10, size_t{1} << 20, size_t{24} << 20}) {
        CUdeviceptr memory = 0;
        std::vector<unsigned char> data(bytes, 1);
        CHECK(cuMemAlloc(&memory, bytes));
        CHECK(cuMemcpyDtoH(data.data(), memory, bytes));
        REQUIRE(std::all_of(data.begin(), data.end(), [](unsigned char byte) { return byte == 0; }));
        CHECK(cuMemsetD8(memory, 1, bytes));
        CHECK(cuCtxSynchronize());
    }
}
