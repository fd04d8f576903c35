// When another process is to make a context, by graphs that were instantiated.
#include "runtime/device/cuda/short_gaps.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

using namespace smt::runtime::device;
using namespace std::chrono_literals;

namespace {

class Contexts {
public:
    ShortGaps::MakeContext make(bool works = true) {
        return [this, works](const ShortGaps::Over&) {
            const std::lock_guard lock(mutex_);
            ++made_;
            changed_.notify_all();
            return works;
        };
    }
    void await(int count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return made_ >= count; });
    }
    int made() {
        const std::lock_guard lock(mutex_);
        return made_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int made_ = 0;
};

CUresult made_graph(CUgraphExec*, CUgraph, unsigned long long) { return CUDA_SUCCESS; }
CUresult refused_graph(CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*) {
    return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

TEST_CASE("short gaps: a context behind a row of graphs, and another one behind the next row") {
    Contexts contexts;
    {
        ShortGaps gaps(contexts.make(), {.quiet = 200ms, .longest = 1h, .between = 0ms});
        for (int each = 0; each < 3; ++each) gaps.instantiated();
        contexts.await(1);
        gaps.instantiated();
        contexts.await(2);
    }
    CHECK(contexts.made() == 2);
}

TEST_CASE("short gaps: graphs that come without a pause get a context, too") {
    Contexts contexts;
    ShortGaps gaps(contexts.make(), {.quiet = 1h, .longest = 0ms, .between = 1h});
    while (contexts.made() == 0) {
        gaps.instantiated();
        std::this_thread::yield();
    }
    CHECK(contexts.made() == 1);
}

TEST_CASE("short gaps: where no context can be made it is tried three times") {
    Contexts contexts;
    {
        ShortGaps gaps(contexts.make(false), {.quiet = 0ms, .longest = 0ms, .between = 0ms});
        for (int each = 1; each <= 3; ++each) {
            gaps.instantiated();
            contexts.await(each);
        }
        gaps.instantiated();
    }
    CHECK(contexts.made() == 3);
}

TEST_CASE("short gaps: without graphs there is no context, and the end waits for nothing") {
    Contexts contexts;
    {
        ShortGaps gaps(contexts.make(), {.quiet = 0ms, .longest = 0ms, .between = 0ms});
        smt::DriverApi driver{};
        driver.cuGraphInstantiateWithParams = refused_graph;
        gaps.watch(driver);
        CHECK(driver.cuGraphInstantiate_v2 == nullptr);
        CHECK(driver.cuGraphInstantiateWithParams(nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
    }
    CHECK(contexts.made() == 0);
}

TEST_CASE("short gaps: calls through a driver's table tell of graphs") {
    Contexts contexts;
    ShortGaps gaps(contexts.make(), {.quiet = 0ms, .longest = 0ms, .between = 1h});
    smt::DriverApi driver{};
    driver.cuGraphInstantiateWithFlags = made_graph;
    gaps.watch(driver);
    CHECK(driver.cuGraphInstantiateWithFlags(nullptr, nullptr, 0) == CUDA_SUCCESS);
    contexts.await(1);
}
