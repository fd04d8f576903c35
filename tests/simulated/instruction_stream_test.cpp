#include "runtime/device/simulated/machine/instruction_stream.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "tests/simulated/script.h"

using namespace smt::tests;

namespace {

constexpr BlockNeeds kTwoWarps{64, 32, 0, 1};

const std::vector<Instruction> kLoads = {
    {.unit = Unit::kFloat, .writes = {3}},
    {.unit = Unit::kMemory, .reads = {3}, .writes = {1}, .space = Space::kGlobal, .transactions = 4},
    {.unit = Unit::kBarrier, .result = Step::Result::kBarrier},
    {.unit = Unit::kMemory,
     .reads = {1},
     .writes = {2},
     .space = Space::kGlobal,
     .transactions = 32,
     .atomic = true},
};

// Runs one block to its end, a step of each warp in turns, and records it.
InstructionStream record(const std::vector<Instruction>& instructions) {
    InstructionStream stream;
    stream.kernel = "loads";
    stream.needs = kTwoWarps;
    stream.grid_blocks = 8;
    const Script script(instructions);
    RecordedBlock block(std::make_unique<ScriptBlock>(script, 2), stream);
    while (!block.finished()) {
        for (int warp = 0; warp < 2; ++warp) {
            if (block.next(warp)) block.step(warp);
        }
    }
    return stream;
}

}  // namespace

TEST_CASE("a block is written down as it runs", "[streams]") {
    const InstructionStream stream = record(kLoads);
    REQUIRE(stream.blocks.size() == 1);
    CHECK(stream.executed() == 8);
    const auto& warps = stream.blocks[0].warps;
    REQUIRE(warps.size() == 2);
    for (const auto& warp : warps) {
        REQUIRE(warp.size() == 4);
        CHECK((warp[1].transactions == 4 && warp[3].transactions == 32));
        CHECK((!warp[0].arrives && !warp[1].arrives && warp[2].arrives && !warp[3].arrives));
        CHECK(stream.instructions[warp[3].instruction].atomic);
        CHECK(stream.instructions[warp[3].instruction].reads == std::vector<uint16_t>{1});
        CHECK((stream.instructions[warp[1].instruction].to_memory() &&
               !stream.instructions[warp[0].instruction].to_memory()));
    }
}

TEST_CASE("what was recorded is the same after a file", "[streams]") {
    const InstructionStream stream = record(repeat(5, kLoads));
    std::stringstream file;
    file << stream;
    InstructionStream again;
    REQUIRE(read(file, again));
    std::stringstream second;
    second << again;
    CHECK(second.str() == file.str());
    CHECK(again.executed() == 40);
    CHECK((again.kernel == "loads" && again.grid_blocks == 8 && again.needs.threads == 64));
    for (const std::string& broken :
         {std::string("nothing"),
          std::string("smt-instruction-stream-1 k 64 32 0 1 8 1 1\n0 0 0 0 0 0\n1\n1 7\n"),
          file.str().substr(0, file.str().size() / 2)}) {
        std::istringstream in(broken);
        InstructionStream nothing;
        CHECK_FALSE(read(in, nothing));
    }
}

TEST_CASE("a recorded block takes the cycles of the block that it was", "[streams]") {
    class Recorded final : public Grid {
    public:
        explicit Recorded(const InstructionStream& stream) : stream_(stream) {
            size = {4, 1, 1};
            needs = stream.needs;
        }
        std::unique_ptr<Block> begin(Dim3 index, const Place&) override {
            return std::make_unique<ReplayedBlock>(stream_, index.x, false);
        }
        void ended(const GridResult& of) override { result = of; }
        GridResult result;

    private:
        const InstructionStream& stream_;
    };
    const auto instructions = repeat(20, kLoads);
    const InstructionStream stream = record(instructions);
    Machine first({.multiprocessors = 1}), second({.multiprocessors = 1});
    auto original = script("loads", 4, kTwoWarps, instructions);
    auto replayed = std::make_shared<Recorded>(stream);
    first.launch(original);
    second.launch(replayed);
    run(first);
    run(second);
    CHECK(replayed->result.instructions == original->result.instructions);
    CHECK(replayed->result.ended - replayed->result.started ==
          original->result.ended - original->result.started);
}

TEST_CASE("an endless block begins again when all its warps are through", "[streams]") {
    const InstructionStream stream = record(kLoads);
    ReplayedBlock block(stream, 0, true);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 3; ++i) {
            REQUIRE(block.next(0));
            block.step(0);
        }
        CHECK_FALSE(block.next(0));  // at the barrier
        for (int i = 0; i < 3; ++i) {
            REQUIRE(block.next(1));
            block.step(1);
        }
        REQUIRE(block.next(0));
        CHECK(block.step(0).result == Step::Result::kExited);
        CHECK_FALSE(block.next(0));
        CHECK(block.step(1).transactions == 32);
    }
    CHECK_FALSE(block.finished());
}
