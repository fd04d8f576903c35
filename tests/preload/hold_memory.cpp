// hold_memory: says where its memory is, and on a line of input whether that is as it was.
#include <algorithm>
#include <vector>

#include "tests/preload/program.h"

int main() {
    constexpr size_t kBytes = 1u << 20;
    preload::start();
    CUdeviceptr memory = 0;
    CHECK(cuMemAlloc(&memory, kBytes));
    CHECK(cuMemsetD8(memory, 0x11, kBytes));
    CHECK(cuCtxSynchronize());
    void* pinned = nullptr;
    CHECK(cuMemHostAlloc(&pinned, 8u << 20, 0));
    std::printf("%llx\n", memory);
    std::fflush(stdout);
    std::getchar();
    std::vector<unsigned char> bytes(kBytes);
    CHECK(cuMemcpyDtoH(bytes.data(), memory, kBytes));
    const bool same =
        std::all_of(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte == 0x11; });
    std::puts(same ? "unchanged" : "overwritten");
}
