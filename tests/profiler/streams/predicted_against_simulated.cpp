// What Kernelet's model predicts of recorded kernels, alone and of every two of them, against what
// multiprocessors issue that run them:
//
//   assumed   one that is as the model assumes it (assumed.h)
//   machine   the simulated device's, with units, dependencies, barriers and queues (replayed.h)
//
//     predicted_against_simulated FOLDER       of folders, one for each program, with its kernels' streams
//
// Of each program the kernel that executes most. The model is asked in two forms: `paper` knows R_m and the
// share of uncoalesced accesses, `told` also how long the warps of one block by itself wait (stalls.h; from
// two runs of that block, one of them with a memory that takes no time). Pairs have half of the blocks that
// fit each. Leaves with 1 where an error is beyond its bound, below.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "profiler/models/co_schedule.h"
#include "profiler/models/stalls.h"
#include "tests/profiler/streams/assumed.h"
#include "tests/profiler/streams/replayed.h"

namespace {

namespace fs = std::filesystem;
namespace models = smt::profiler::models;
namespace simulated = smt::runtime::device::simulated;
using simulated::InstructionStream;

constexpr long kFirst = 8'000,
               kAll = 40'000;  // cycles: some ten latencies until all is under way, and fifty that count
constexpr double kSectorsOfRequest = 4, kSectorsOfWarp = 32;
constexpr size_t kShared =
    models::kPipes - 1;  // the pipes are the units that take a warp's time, and shared memory
static_assert(kShared == static_cast<size_t>(simulated::Unit::kBarrier));

// Bounds: what was seen, and a little more, for all is the same in every run on every machine. A better
// model comes with lower ones.
struct Bound {
    const char* what;
    double mean, worst;
};

struct Program {
    std::string name;
    InstructionStream stream;
    models::KernelModel paper, told;
    int half = 1;
    double assumed = 0, machine = 0;  // instructions a cycle alone, with all that fits
};

models::Multiprocessor multiprocessor() {
    constexpr double kCyclesPerSecond = 1.98e9;
    models::Multiprocessor found;
    found.warp_schedulers = simulated::kPartitions;
    found.memory.latency = static_cast<double>(simulated::kGlobalLatency);
    found.memory.requests_per_cycle = static_cast<double>(simulated::kMemoryBytesPerSecond) /
                                      simulated::kWholeDevice / kCyclesPerSecond /
                                      (simulated::kSectorBytes * kSectorsOfRequest);
    found.memory.uncoalesced_requests = kSectorsOfWarp / kSectorsOfRequest;
    return found;
}

// Of all its files the one of the kernel that executes most.
bool load(const fs::path& folder, Program& program) {
    program.name = folder.filename();
    double most = 0;
    std::vector<fs::path> files(fs::directory_iterator(folder), {});
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
        std::ifstream in(file);
        InstructionStream stream;
        if (!read(in, stream) || stream.blocks.empty()) continue;
        const double all = static_cast<double>(stream.executed() * stream.grid_blocks) /
                           static_cast<double>(stream.blocks.size());
        if (all <= most) continue;
        most = all;
        program.stream = std::move(stream);
    }
    return most > 0;
}

// As the counters of a GPU would have it (collect/metrics.h).
void count(Program& program) {
    double instructions = 0, accesses = 0, sectors = 0;
    models::PipeCycles cycles{};
    for (const auto& block : program.stream.blocks) {
        for (const auto& warp : block.warps) {
            for (const auto& each : warp) {
                ++instructions;
                const auto& what = program.stream.instructions[each.instruction];
                const auto unit = static_cast<size_t>(what.unit);
                if (unit < kShared) cycles[unit] += static_cast<double>(simulated::kUnitTimes[unit].taken);
                if (what.space == simulated::Space::kShared)
                    cycles[kShared] += static_cast<double>(each.transactions * simulated::kPartitions);
                if (!program.stream.instructions[each.instruction].to_memory()) continue;
                ++accesses;
                sectors += each.transactions;
            }
        }
    }
    models::KernelModel& kernel = program.paper;
    kernel.warps_per_block = static_cast<int>(program.stream.needs.warps());
    kernel.most_blocks = static_cast<int>(simulated::blocks_per_multiprocessor(program.stream.needs));
    kernel.memory_ratio = accesses / instructions;
    const double each = accesses > 0 ? sectors / accesses : 0;
    kernel.uncoalesced_ratio =
        std::clamp((each - kSectorsOfRequest) / (kSectorsOfWarp - kSectorsOfRequest), 0.0, 1.0);
    kernel.instructions_per_block = instructions / static_cast<double>(program.stream.blocks.size());
    program.half = std::max(1, kernel.most_blocks / 2);
    program.told = kernel;
    program.told.requests = each / kSectorsOfRequest;
    for (double& pipe : cycles) pipe /= instructions;
    program.told.pipes = cycles;
}

void tell(Program& program, const models::Multiprocessor& of) {
    InstructionStream quick = program.stream;
    for (auto& block : quick.blocks) {
        for (auto& warp : block.warps) {
            for (auto& each : warp)
                each.transactions = quick.instructions[each.instruction].to_memory() ? 0 : each.transactions;
        }
    }
    const double used = std::min(program.paper.warps_per_block, of.warp_schedulers);
    const double slow = smt::tests::replay({&program.stream, 1}, {}, kFirst, kAll)[0] / used;
    const double fast = smt::tests::replay({&quick, 1}, {}, kFirst, kAll)[0] / used;
    models::Stalls stalls;
    stalls.warps = program.paper.warps_per_block / used;
    stalls.issue = slow;
    stalls.memory = std::max(0.0, stalls.warps / slow - stalls.warps / fast);
    stalls.memory_ratio = program.paper.memory_ratio;
    stalls.requests = program.told.requests;
    models::Memory of_scheduler = of.memory;
    of_scheduler.requests_per_cycle /= used;
    const models::Waits waits = models::waits(stalls, of_scheduler);
    program.told.interval = waits.interval;
    program.told.latency = std::max(1.0, waits.latency);
}

class Errors {
public:
    void add(double error) { all_.push_back(std::abs(error)); }
    double mean() const {
        double sum = 0;
        for (double each : all_) sum += each;
        return sum / static_cast<double>(all_.size());
    }
    double median() const {
        std::vector<double> sorted = all_;
        std::sort(sorted.begin(), sorted.end());
        return sorted[sorted.size() / 2];
    }
    double worst() const { return *std::max_element(all_.begin(), all_.end()); }
    bool within(const Bound& bound) const {
        const bool good = mean() <= bound.mean && worst() <= bound.worst;
        fmt::print(
            "{:<46} mean {:.4f} (at most {:.4f}), median {:.4f}, worst {:.4f} (at most {:.4f}), of {}{}\n",
            bound.what, mean(), bound.mean, median(), worst(), bound.worst, all_.size(),
            good ? "" : "   BEYOND ITS BOUND");
        return good;
    }

private:
    std::vector<double> all_;
};

double alone(const models::Multiprocessor& of, const models::KernelModel& kernel) {
    return models::alone(of, kernel, kernel.most_blocks);
}

std::array<double, 2> assumed(const models::Multiprocessor& of, const Program& one, int blocks,
                              const Program* other = nullptr) {
    smt::tests::AssumedMultiprocessor simulated(of.memory, of.warp_schedulers);
    simulated.add(one.stream, blocks, 0);
    if (other) simulated.add(other->stream, other->half, 1);
    return simulated.run(kFirst, kAll);
}

// Whichever comes first is a little ahead.
std::array<double, 2> replayed(const Program& one, const Program& other) {
    const auto first = smt::tests::replay({&one.stream, one.half}, {&other.stream, other.half}, kFirst, kAll);
    const auto second =
        smt::tests::replay({&other.stream, other.half}, {&one.stream, one.half}, kFirst, kAll);
    return {(first[0] + second[1]) / 2, (first[1] + second[0]) / 2};
}

}  // namespace

int main(int, char** argv) {
    const models::Multiprocessor of = multiprocessor();
    std::vector<fs::path> folders(fs::directory_iterator(argv[1]), {});
    std::sort(folders.begin(), folders.end());
    std::vector<Program> programs;
    for (const fs::path& folder : folders) {
        if (!load(folder, programs.emplace_back()))
            return fmt::print("{}: no kernel was recorded\n", folder.string()), 1;
    }
    Errors assumed_ipc, paper_ipc, told_ipc, assumed_profit, paper_profit, told_profit;
    fmt::print("{:<19} {:<34} {:>6} {:>6} {:>6}  {:>7} {:>7}  {:>7} {:>7} {:>7}  interval, latency\n",
               "program", "kernel, warps x blocks", "R_m", "unco.", "instr.", "assumed", "paper", "machine",
               "paper", "told");
    for (Program& each : programs) {
        count(each);
        tell(each, of);
        each.assumed = assumed(of, each, each.paper.most_blocks)[0];
        each.machine = smt::tests::replay({&each.stream, each.paper.most_blocks}, {}, kFirst, kAll)[0];
        const double paper = alone(of, each.paper), told = alone(of, each.told);
        assumed_ipc.add(paper / each.assumed - 1);
        paper_ipc.add(paper / each.machine - 1);
        told_ipc.add(told / each.machine - 1);
        fmt::print(
            "{:<19} {:<34.34} {:>6.3f} {:>6.3f} {:>6.0f}  {:>7.3f} {:>7.3f}  {:>7.3f} {:>7.3f} {:>7.3f}  "
            "{:.1f} {:.0f}\n",
            each.name,
            fmt::format("{} {}x{}", each.stream.kernel, each.paper.warps_per_block, each.paper.most_blocks),
            each.paper.memory_ratio, each.paper.uncoalesced_ratio, each.paper.instructions_per_block,
            each.assumed, paper, each.machine, paper, told, each.told.interval, each.told.latency);
    }
    fmt::print(
        "\nco-scheduling profit, half of the blocks of each: assumed against paper, machine against paper "
        "and told\n");
    for (size_t i = 0; i < programs.size(); ++i) {
        for (size_t j = i; j < programs.size(); ++j) {
            const Program &a = programs[i], &b = programs[j];
            const models::Blocks blocks{a.half, b.half};
            const double paper = models::co_schedule(of, a.paper, b.paper, blocks).profit,
                         told = models::co_schedule(of, a.told, b.told, blocks).profit;
            const double by_assumption = models::profit({a.assumed, b.assumed}, assumed(of, a, a.half, &b));
            const double by_machine = models::profit({a.machine, b.machine}, replayed(a, b));
            assumed_profit.add(paper - by_assumption);
            paper_profit.add(paper - by_machine);
            told_profit.add(told - by_machine);
            fmt::print("{:<19} {:<19} {:>7.3f} {:>7.3f}  {:>7.3f} {:>7.3f} {:>7.3f}\n", a.name, b.name,
                       by_assumption, paper, by_machine, paper, told);
        }
    }
    fmt::print("\n");
    bool good = programs.size() > 1;
    good &= assumed_ipc.within({"IPC, paper on what it assumes (parts)", 0.06, 0.5});
    good &= assumed_profit.within({"profit, paper on what it assumes", 0.05, 0.3});
    good &= paper_ipc.within({"IPC, paper on the machine (parts)", 0.45, 1});
    good &= paper_profit.within({"profit, paper on the machine", 0.1, 0.45});
    good &= told_ipc.within({"IPC, told on the machine (parts)", 0.12, 0.32});
    good &= told_profit.within({"profit, told on the machine", 0.067, 0.3});
    return good ? 0 : 1;
}
