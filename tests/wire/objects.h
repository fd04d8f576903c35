// Calls about the server's objects, by one lane or two.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "opcodes.gen.h"
#include "tests/wire/server.h"

namespace smt::tests::objects {

using namespace protocol;

constexpr int kRounds = 200;
constexpr uint64_t kNoArray = kNull;

// A generated call whose parameters are all 8 bytes wide. Calls that answer something begin with a 1.
inline Reply ask(TestLane& lane, GeneratedOp op, std::vector<uint64_t> words) {
    return lane.call(static_cast<uint16_t>(op), words.data(), words.size() * sizeof(uint64_t));
}

inline CUresult status_of(TestLane& lane, GeneratedOp op, std::vector<uint64_t> words) {
    return ask(lane, op, std::move(words)).status;
}

inline uint64_t handle_from(TestLane& lane, GeneratedOp op, std::vector<uint64_t> words) {
    const Reply reply = ask(lane, op, std::move(words));
    REQUIRE(reply.status == CUDA_SUCCESS);
    return reply.as<uint64_t>();
}

inline uint64_t new_graph(TestLane& lane) { return handle_from(lane, GeneratedOp::kGraphCreate, {1, 0}); }
inline uint64_t add_node(TestLane& lane, uint64_t graph) {
    return handle_from(lane, GeneratedOp::kGraphAddEmptyNode, {1, graph, kNoArray, 0});
}
inline uint64_t add_child(TestLane& lane, uint64_t graph, uint64_t child) {
    return handle_from(lane, GeneratedOp::kGraphAddChildGraphNode, {1, graph, kNoArray, 0, child});
}
inline uint64_t child_of(TestLane& lane, uint64_t node) {
    return handle_from(lane, GeneratedOp::kGraphChildGraphNodeGetGraph, {1, node});
}
inline CUresult destroy_graph(TestLane& lane, uint64_t graph) {
    return status_of(lane, GeneratedOp::kGraphDestroy, {graph});
}
inline CUresult ask_type(TestLane& lane, uint64_t node) {
    return status_of(lane, GeneratedOp::kGraphNodeGetType, {1, node});
}

inline std::vector<uint64_t> nodes_of(TestLane& lane, uint64_t graph) {
    const Reply reply = ask(lane, GeneratedOp::kGraphGetNodes, {3, graph, 16, 16});
    REQUIRE(reply.status == CUDA_SUCCESS);
    Reader reader = reply.reader();
    uint64_t count = 0;
    const uint64_t* nodes = reader.array<uint64_t>(count);
    return std::vector<uint64_t>(nodes, nodes + reader.scalar<uint64_t>());
}

// Both at the same time, again and again; what each was answered.
struct Race {
    TestSession client;
    TestLane lanes[2] = {client.open_lane(), client.open_lane()};
    CUresult answers[2] = {};

    template <typename First, typename Second>
    void run(First first, Second second) {
        std::atomic<int> ready{0};
        const auto together = [&ready] {
            ready.fetch_add(1);
            while (ready.load() < 2) std::this_thread::yield();
        };
        std::thread other([&] {
            together();
            answers[1] = second(lanes[1]);
        });
        together();
        answers[0] = first(lanes[0]);
        other.join();
    }
    template <typename Call>
    void run(Call call) {
        run(call, call);
    }
    bool one_won() const {
        return (answers[0] == CUDA_SUCCESS) != (answers[1] == CUDA_SUCCESS) &&
               (answers[0] == CUDA_ERROR_INVALID_HANDLE || answers[1] == CUDA_ERROR_INVALID_HANDLE);
    }
};

}  // namespace smt::tests::objects
