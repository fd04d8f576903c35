#include "profiler/collect/metrics.h"

#include <algorithm>
#include <cmath>

namespace smt::profiler::collect {

namespace {

constexpr double kSectorBytes = 32;
constexpr double kCoalescedSectors = 4, kUncoalescedSectors = 32;

int64_t whole(double value) { return std::isfinite(value) && value > 0 ? std::llround(value) : 0; }

double part(double some, double of) { return of > 0 ? some / of : 0; }

}  // namespace

const std::array<const char*, kMetrics> kMetricNames = {
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.max",
    "smsp__inst_executed.sum",
    "smsp__inst_issued.sum",
    "smsp__inst_executed_op_global_ld.sum",
    "smsp__inst_executed_op_global_st.sum",
    "smsp__inst_executed_op_global_red.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "dram__sectors_read.sum",
    "dram__sectors_write.sum",
    "lts__t_sectors.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio",
    "sm__cycles_active.avg",
    "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
};

models::Counters counters_of(const Sample& sample, int64_t blocks) {
    const double requests = sample[kLoadRequests] + sample[kStoreRequests];
    const double sectors = sample[kLoadSectors] + sample[kStoreSectors];
    const double uncoalesced =
        (part(sectors, requests) - kCoalescedSectors) / (kUncoalescedSectors - kCoalescedSectors);
    const double memory =
        sample[kGlobalLoads] + sample[kGlobalStores] + sample[kGlobalReductions] + sample[kGlobalAtomics];
    models::Counters counters;
    counters.blocks = blocks;
    counters.nanoseconds = whole(sample[kTime]);
    counters.instructions = whole(sample[kExecuted]);
    counters.memory_instructions = whole(memory);
    counters.uncoalesced_instructions = whole(memory * std::clamp(uncoalesced, 0.0, 1.0));
    counters.dram_reads = whole(sample[kDramReads]);
    counters.dram_writes = whole(sample[kDramWrites]);
    return counters;
}

std::map<std::string, double> facts_of(const Sample& sample, int64_t blocks) {
    const double active = part(sample[kActiveCycles], sample[kCycles]);
    std::map<std::string, double> facts = {
        {"counted.hertz", part(sample[kCycles] * 1e9, sample[kTime])},
        {"counted.ipc", part(sample[kExecuted], sample[kCycles])},
        {"counted.issued_per_executed", part(sample[kIssued], sample[kExecuted])},
        {"counted.issue_slot_utilization", sample[kIssueSlots] / 100},
        {"counted.occupancy", sample[kOccupancy] / 100},
        {"counted.l2_bytes_per_block", part(sample[kL2Sectors] * kSectorBytes, static_cast<double>(blocks))},
        {"counted.dram_bytes_per_block",
         part((sample[kDramReads] + sample[kDramWrites]) * kSectorBytes, static_cast<double>(blocks))},
        {"counted.waits.memory", sample[kWaitsForMemory]},
        {"counted.waits.barrier", sample[kWaitsAtBarriers]},
        {"counted.waits.pipe", sample[kWaitsForPipes]},
        {"counted.waits.issue", sample[kWaitsForIssue]},
        {"counted.waits.queue", sample[kWaitsForQueue]},
        {"counted.l1_bytes_per_block",
         part((sample[kLoadSectors] + sample[kStoreSectors]) * kSectorBytes, static_cast<double>(blocks))},
        {"counted.waits.mio", sample[kWaitsForMio]},
        {"counted.active", active},
        {"counted.pipes.alu", sample[kPipeAlu] / 100},
        {"counted.pipes.fma", sample[kPipeFma] / 100},
        {"counted.pipes.special", sample[kPipeSpecial] / 100},
        {"counted.pipes.double", sample[kPipeDouble] / 100},
        {"counted.pipes.load_store", sample[kPipeLoadStore] / 100},
        {"counted.pipes.data", part(sample[kPipeData] / 100, active)},
    };
    std::erase_if(facts, [](const auto& fact) { return !std::isfinite(fact.second); });
    return facts;
}

}  // namespace smt::profiler::collect
