// closes FILE: closes every descriptor that it has not opened itself, as daemons do, opens a file of its own,
// and goes on calling. Says what its calls return, in this thread and in one that has made no call yet.
#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "tests/preload/program.h"

int main(int, char** arguments) {
    const CUcontext context = preload::start();
    CUdeviceptr memory = 0;
    CHECK(cuMemAlloc(&memory, 4096));
    REQUIRE(close_range(3, ~0u, 0) == 0);
    for (int i = 0; i < 20; ++i) REQUIRE(open(arguments[1], O_RDWR | O_CREAT | O_APPEND, 0600) == 3 + i);
    int other = 0;
    std::thread([&] {
        CHECK(cuCtxSetCurrent(context));
        other = cuMemAlloc(&memory, 4096);
    }).join();
    int own = 0;
    for (int i = 0; own == CUDA_SUCCESS && i < 10'000; ++i) own = cuMemAlloc(&memory, 4096);
    std::printf("%d %d\n", other, own);
}
