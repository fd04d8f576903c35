// crowd THREADS: says "begun", waits for a line, then so many threads at once make their first call. Says how
// many got an error, if all got the same one.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/preload/program.h"

int main(int, char** arguments) {
    const int count = std::atoi(arguments[1]);
    const CUcontext context = preload::start();
    CUdeviceptr memory = 0;
    CHECK(cuMemAlloc(&memory, 4096));  // the first thread's lane
    preload::say("begun");
    char line[16];
    if (!std::fgets(line, sizeof line, stdin)) return 1;

    std::atomic<int> called{0}, failed{0}, error{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&] {
            CUdeviceptr own = 0;
            CHECK(cuCtxSetCurrent(context));
            if (const CUresult status = cuMemAlloc(&own, 4096)) {
                int none = 0;
                REQUIRE(error.compare_exchange_strong(none, status) || none == status);
                failed.fetch_add(1);
            }
            called.fetch_add(1);
            while (called.load() < count)
                std::this_thread::yield();  // it keeps its lane until all have asked for one
        });
    }
    for (std::thread& thread : threads) thread.join();
    std::printf("%d of %d threads: error %d\n", failed.load(), count, error.load());
    std::fflush(stdout);
    CHECK(cuMemFree(memory));
}
