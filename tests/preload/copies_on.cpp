// Copies up, waits for a line, copies down, and says how that ended and whether the bytes came.
#include <cstring>

#include "tests/preload/program.h"

int main() {
    preload::start();
    CUdeviceptr memory = 0;
    char bytes[4096], back[sizeof bytes] = {};
    std::memset(bytes, 'x', sizeof bytes);
    CHECK(cuMemAlloc(&memory, sizeof bytes));
    CHECK(cuMemcpyHtoD(memory, bytes, sizeof bytes));
    preload::say("ready");
    if (std::getchar() == EOF) return 1;
    const int status = cuMemcpyDtoH(back, memory, sizeof back);
    std::printf("%d, %s bytes\n", status, std::memcmp(bytes, back, sizeof back) == 0 ? "the same" : "other");
}
