// What `smt profile` shows of a kernel: measured figures of the store, and what the models make of them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiler/models/co_schedule.h"
#include "profiler/models/saturation.h"
#include "profiler/models/utilization.h"
#include "profiler/store/profile.h"
#include "runtime/schedule/combinations.h"
#include "runtime/schedule/profile.h"

namespace smt::tools {

struct Curve {
    std::vector<std::pair<int, double>> points;  // CTAs on each SM, or SMs; ns that a block adds
};

// One for each profile. What was not measured is nothing.
struct ProfileRow {
    const profiler::Profile* profile = nullptr;
    std::string name;                                          // of the kernel, for people
    int multiprocessors = 0;                                   // of its device; 0: not known
    bool managed = false;                                      // it can be given quotas
    std::optional<double> launch_ns, block_ns;                 // alone, with all that fits
    std::optional<profiler::models::Utilization> utilization;  // PUR, MUR
    double memory_ratio = 0, uncoalesced_ratio = 0;            // with utilization
    std::optional<double> issue_slots, occupancy;              // 0 to 1
    std::optional<double> l2_bytes_per_block;
    std::optional<double> ipc,
        predicted_ipc;               // of a multiprocessor: counted; by the Markov model, alone, from R_m
    std::optional<double> told_ipc;  // and by the model that is told of waits, too (models/stalls.h)
    std::optional<profiler::models::Footprint> saturation;
    std::optional<double> stop_ns, predicted_stop_ns;  // measured; by models/preemption.h
    std::optional<double> duration_error;  // held out, of the kernel with this block shape: over all sizes,
    std::optional<double> long_duration_error;  // and over those whose launches take 100 us and more
    Curve by_ctas;                              // on all multiprocessors
    Curve by_sms;                               // with the most CTAs
    runtime::schedule::Profile known;           // what policies are told of it
};

// What the Markov model is given of a kernel, with so many CTAs on a multiprocessor: Kernelet's two ratios,
// or what was counted of its waits and measured with fewer CTAs, too.
struct ModelInputs {
    profiler::models::Multiprocessor multiprocessor;
    profiler::models::KernelModel paper, told;
    double resident = 1;  // CTAs that were there on average while it was counted; 1 at least
};
// Nothing: it was not counted. Without counted waits `told` is as `paper`.
std::optional<ModelInputs> model_inputs(const profiler::Profile& profile);

// Two kernels side by side, with so many CTAs each: what was measured (`together`: of each one's rate alone),
// and what the models say.
struct MeasuredRow {
    const ProfileRow* first = nullptr;
    const ProfileRow* second = nullptr;
    profiler::models::CoSchedule measured;
    bool learnt = false;                                   // while programs ran, not by `smt profile --pair`
    std::optional<double> paper, told;                     // profit
    std::optional<runtime::schedule::BeyondPipe> refused;  // so that nothing goes by it
};
// Of each two rows that were measured together, all combinations.
std::vector<MeasuredRow> measured_of(const std::vector<ProfileRow>& rows);
std::string table_of(const std::vector<MeasuredRow>& rows);
std::string json_of(const std::vector<MeasuredRow>& rows);

// Two kernels side by side, by the models: each with half of the CTAs that fit, at least one (as
// SMT_PROFILE=halves runs them).
struct PairRow {
    const ProfileRow* first = nullptr;
    const ProfileRow* second = nullptr;
    std::optional<profiler::models::CoSchedule> paper, told;  // if both were counted
    std::optional<profiler::models::CoSchedule>
        measured;  // the best combination that was, and was not refused
};
// All pairs of rows that were counted on one device, or measured together; a kernel beside itself, too.
std::vector<PairRow> pairs_of(const std::vector<ProfileRow>& rows);
std::string table_of(const std::vector<PairRow>& pairs);
std::string json_of(const std::vector<PairRow>& pairs);

// The rows point into `profiles`.
std::vector<ProfileRow> rows_of(const std::vector<profiler::Profile>& profiles);

// A line for each row, aligned, with a header. Columns without a value in any row are left out.
std::string table_of(const std::vector<ProfileRow>& rows);
// An array of objects with the same, for scripts.
std::string json_of(const std::vector<ProfileRow>& rows);
// Time against CTAs on each SM, and throughput against SMs, of all rows that were swept. Empty: none was.
std::string plot_of(const std::vector<ProfileRow>& rows);

// Fits FLEP's model of duration for each kernel and block shape that ran with grids of two classes at least:
// coefficients "duration.*" to be recorded, with each profile's key.
std::vector<profiler::Profile> fitted_durations(const std::vector<profiler::Profile>& profiles);

// "void ns::kernel<int>(float*)" -> "ns::kernel<int>".
std::string short_name(const std::string& symbol);

}  // namespace smt::tools
