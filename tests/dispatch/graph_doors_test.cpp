// Graphs with doors on a GPU of the test's own (door_gpu.h), whose branches run beside each other: stopped
// anywhere, what is left goes on, each unit once and behind all that it depends on.
#include "runtime/dispatch/graph_doors.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "tests/dispatch/door_stream.h"
#include "tests/dispatch/graph_gpu.h"

namespace smt::runtime::dispatch {

namespace {

using tests::DoorGpu, tests::FakeGraph, tests::FakeNode;

struct GraphStream : tests::StreamWithDoors {
    GraphStream() : StreamWithDoors(tests::driver_with_graphs()) {}

    // `block_ps`: as learnt of each kernel.
    std::shared_ptr<GraphDoors> doors_of(FakeGraph& graph, uint64_t block_ps = 0) {
        auto doors = std::make_shared<GraphDoors>(dispatcher.supplies().graph_words(),
                                                  reinterpret_cast<CUgraph>(&graph));
        REQUIRE(doors->open(graph.nodes.size()) == CUDA_SUCCESS);
        for (auto& node : graph.nodes) {
            const FakeNode* const next =
                node == graph.nodes.back() ? nullptr : graph.nodes[node->name + 1].get();
            REQUIRE(doors->add({.node = reinterpret_cast<CUgraphNode>(node.get()),
                                .parameters = 2,
                                .units = node->units,
                                .places = DoorGpu::kSms * DoorGpu::kFits,
                                .block_ps = block_ps,
                                .alone = next && next->behind == std::vector{node->name}}) == CUDA_SUCCESS);
        }
        REQUIRE(doors->instantiate(0) == CUDA_SUCCESS);
        return doors;
    }
    CUresult launch(const std::shared_ptr<GraphDoors>& doors) {
        Work work;
        work.function = &doors->form();
        work.total = doors->blocks();
        work.graph = doors;
        return stream->launch(std::move(work));
    }
    CUresult launch_kernel(uint32_t name, uint32_t blocks) {
        return stream->launch(work_of(with_door, name, blocks));
    }
    // Stops what is launched again and again, and resumes it, until it is over. Returns how often it was half
    // way.
    int stop_until_over(std::mt19937_64& random, uint32_t most_units) {
        int half = 0;
        stream->pass_through();
        for (;;) {
            gpu.run(random() % most_units);
            while (!stream->stop()) gpu.run(random() % 4);
            const schedule::Kernel kernel = come_to_end();
            if (kernel.launch == 0) return half;
            half += kernel.blocks_done != 0;
            if (random() % 3 == 0)
                stream->run({}, 0);
            else
                stream->pass_through();
        }
    }
};

// A chain of branches: three beside each other, joined, twice.
FakeGraph branched(uint32_t units) {
    FakeGraph graph;
    graph.add(units, {});
    for (uint32_t i = 0; i < 3; ++i) graph.add(units + i, {0});
    graph.add(1, {1, 2, 3});
    graph.add(units, {4});
    graph.add(2 * units, {4});
    graph.add(units, {5, 6});
    return graph;
}

FakeGraph row_of(uint32_t kernels, std::mt19937_64& random) {
    FakeGraph graph;
    for (uint32_t i = 0; i < kernels; ++i)
        graph.add(static_cast<uint32_t>(1 + random() % 9), i ? std::vector{i - 1} : std::vector<uint32_t>{});
    return graph;
}

// The units that ran from `first` on are one launch of the graph: each once, behind what they depend on.
void check_launch(const FakeGraph& graph, const std::vector<DoorGpu::Unit>& ran, size_t first) {
    std::vector<uint32_t> count(graph.nodes.size());
    std::set<DoorGpu::Unit> seen;
    size_t all = 0;
    for (const auto& node : graph.nodes) all += node->units;
    REQUIRE(ran.size() >= first + all);
    for (size_t i = first; i < first + all; ++i) {
        const auto& [name, unit] = ran[i];
        REQUIRE(seen.insert(ran[i]).second);
        for (uint32_t before : graph.nodes[name]->behind)
            REQUIRE(count[before] == graph.nodes[before]->units);
        ++count[name];
    }
}

}  // namespace

TEST_CASE("graph doors: a graph stopped anywhere runs each unit once, behind what it depends on",
          "[dispatch]") {
    std::mt19937_64 random(7);
    int half = 0;
    for (const uint32_t units : {1u, 7u, 60u, 200u}) {
        FakeGraph graph = branched(units);
        GraphStream it;
        auto doors = it.doors_of(graph);
        const size_t each = doors->blocks();
        for (int launches = 1; launches <= 5; ++launches) {
            REQUIRE(it.launch(doors) == CUDA_SUCCESS);
            half += it.stop_until_over(random, 2 + units);
            REQUIRE(it.gpu.ran.size() == launches * each);
            check_launch(graph, it.gpu.ran, it.gpu.ran.size() - each);
        }
    }
    INFO(half << " stops half way");
    CHECK(half > 50);
}

TEST_CASE("graph doors: kernels in a row decide on each other, once the graph's time is known",
          "[dispatch]") {
    std::mt19937_64 random(9);
    int half = 0;
    for (const bool in_a_row : {true, false}) {
        FakeGraph graph = in_a_row ? row_of(80, random) : branched(5);
        GraphStream it;
        auto doors = it.doors_of(graph, 50'000'000);  // alone no kernel is quick
        const size_t each = doors->blocks();
        doors->form().queued.of(each, 1).set_block_ps(400'000);
        for (int launches = 1; launches <= 12; ++launches) {
            REQUIRE(it.launch(doors) == CUDA_SUCCESS);
            half += it.stop_until_over(random, 30);
            REQUIRE(it.gpu.ran.size() == launches * each);
            check_launch(graph, it.gpu.ran, it.gpu.ran.size() - each);
        }
        const auto decide = std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const auto& node) {
            return node->in_exec.step.how & kDoorDecides;
        });
        CHECK(decide == (in_a_row ? 79 : 2));
    }
    INFO(half << " stops half way");
    CHECK(half > 30);
}

TEST_CASE("graph doors: a few launches of one graph are under way at a time", "[dispatch]") {
    std::mt19937_64 random(5);
    for (const uint32_t units : {1u, 20u, 90u}) {
        FakeGraph graph = branched(units);
        GraphStream it;
        auto doors = it.doors_of(graph);
        const size_t each = doors->blocks(), launches = 3 * GraphDoors::kMostLaunches;
        it.stream->pass_through();
        REQUIRE(it.launch(doors) == CUDA_SUCCESS);
        it.stream->pass_through();
        for (size_t i = 1; i < launches; ++i) REQUIRE(it.launch(doors) == CUDA_SUCCESS);
        CHECK(it.gpu.launches == GraphDoors::kMostLaunches);
        const int half = it.stop_until_over(random, static_cast<uint32_t>(2 * each));
        INFO(half << " stops half way");
        CHECK((units == 1 || half > 4));
        REQUIRE(it.gpu.ran.size() == launches * each);
        for (size_t i = 0; i < launches; ++i) check_launch(graph, it.gpu.ran, i * each);
    }
}

TEST_CASE("graph doors: launches behind each other, of one graph, of two and of kernels", "[dispatch]") {
    std::mt19937_64 random(3);
    FakeGraph one = branched(20), two = branched(9);
    GraphStream it;
    auto doors_of_one = it.doors_of(one), doors_of_two = it.doors_of(two);
    constexpr uint32_t kKernel = 1000, kBlocks = 50;
    for (int round = 0; round < 4; ++round) {
        it.gpu.ran.clear();
        REQUIRE(it.launch(doors_of_one) == CUDA_SUCCESS);
        REQUIRE(it.launch(doors_of_one) == CUDA_SUCCESS);
        REQUIRE(it.launch_kernel(kKernel, kBlocks) == CUDA_SUCCESS);
        REQUIRE(it.launch(doors_of_two) == CUDA_SUCCESS);
        CHECK(it.stop_until_over(random, 60) > 0);
        const size_t of_one = doors_of_one->blocks(), of_two = doors_of_two->blocks();
        REQUIRE(it.gpu.ran.size() == 2 * of_one + kBlocks + of_two);
        check_launch(one, it.gpu.ran, 0);
        check_launch(one, it.gpu.ran, of_one);
        for (uint32_t unit = 0; unit < kBlocks; ++unit)
            REQUIRE(it.gpu.ran[2 * of_one + unit] == DoorGpu::Unit(kKernel, unit));
        check_launch(two, it.gpu.ran, 2 * of_one + kBlocks);
    }
}

TEST_CASE("graph doors: without stops only the frontiers are cleared, and each node is changed once",
          "[dispatch]") {
    FakeGraph graph = branched(30);
    GraphStream it;
    auto doors = it.doors_of(graph);
    it.stream->pass_through();
    for (int i = 0; i < 6; ++i) {
        REQUIRE(it.launch(doors) == CUDA_SUCCESS);
        it.stream->pass_through();
        it.come_to_end();
    }
    CHECK(graph.changes == 8);
    CHECK(it.gpu.launches == 6);
    CHECK(it.gpu.ran.size() == 6 * doors->blocks());
}

TEST_CASE("graph doors: a stop that comes when the graph is over does no harm", "[dispatch]") {
    FakeGraph graph = branched(30);
    GraphStream it;
    auto doors = it.doors_of(graph);
    const size_t each = doors->blocks();
    for (size_t launches = 1; launches <= 3; ++launches) {
        REQUIRE(it.launch(doors) == CUDA_SUCCESS);
        it.stream->pass_through();
        it.gpu.run();  // the marker behind it is not there yet
        REQUIRE(it.stream->stop());
        CHECK(it.come_to_end().launch == 0);
        REQUIRE(it.gpu.ran.size() == launches * each);
        check_launch(graph, it.gpu.ran, it.gpu.ran.size() - each);
    }
}

TEST_CASE("graph doors: without its client what is in flight is stopped, and the copy goes", "[dispatch]") {
    FakeGraph graph = branched(30);
    {
        GraphStream it;
        auto doors = it.doors_of(graph);
        REQUIRE(it.launch(doors) == CUDA_SUCCESS);
        REQUIRE(it.launch(doors) == CUDA_SUCCESS);
        it.stream->pass_through();
        it.gpu.run(10);
        it.stream->abandon();
        CHECK(it.come_to_end().launch == 0);
        CHECK(it.gpu.ran.size() < 100);
        CHECK(it.gpu.launches == 2);
    }
    CHECK(graph.alive == 0);
    CHECK(graph.instances == 0);
}

TEST_CASE("graph doors: words of graphs are given again, and never twice at a time", "[dispatch]") {
    DoorGpu gpu;
    const DriverApi driver = DoorGpu::driver();
    DoorMemory memory(driver);
    GraphWords words(memory);
    std::mt19937_64 random(1);
    std::vector<std::pair<CUdeviceptr, uint32_t>> taken;
    for (int i = 0; i < 4000; ++i) {
        if (taken.empty() || random() % 5 > 1) {
            const auto lines = static_cast<uint32_t>(1 + random() % 20);
            CUdeviceptr at = 0;
            REQUIRE(words.take(lines, &at) == CUDA_SUCCESS);
            for (const auto& [other, others] : taken)
                REQUIRE((at + uint64_t{lines} * GraphWords::kLineBytes <= other ||
                         other + uint64_t{others} * GraphWords::kLineBytes <= at));
            std::memset(reinterpret_cast<void*>(at), 1, lines * GraphWords::kLineBytes);
            taken.emplace_back(at, lines);
        } else {
            std::swap(taken[random() % taken.size()], taken.back());
            words.give(taken.back().second, taken.back().first);
            taken.pop_back();
        }
    }
    CUdeviceptr at = 0;
    CHECK(words.take(GraphWords::kMostLines, &at) == CUDA_SUCCESS);
    CHECK(words.take(GraphWords::kMostLines + 1, &at) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace smt::runtime::dispatch
