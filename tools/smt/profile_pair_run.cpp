// See profile_pair_run.h.
#include "tools/smt/profile_pair_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "runtime/profiles/plan.h"
#include "tools/smt/measuring_server.h"
#include "tools/smt/profile_rows.h"
#include "tools/smt/profile_store.h"

namespace smt::tools {

using profiler::Key;
using profiler::Profile;

namespace {

class PairMeasurement {
public:
    PairMeasurement(const PairRequest& request, profiler::Store& store) : request_(request), store_(store) {}

    std::vector<Profile> run() {
        for (const auto& command : request_.commands) alone(command);
        side_by_side();
        std::vector<Profile> ours = profiles();
        const std::vector<ProfileRow> rows = rows_of(ours);
        if (windows() == 0) throw Failure("nothing was measured side by side: " + server_.side_by_side());
        if (measured_of(rows).empty())
            throw Failure(
                "kernels were measured side by side, and not alone with all the CTAs that fit: smt profile "
                "--sweep -- PROGRAM measures that");
        return ours;
    }

private:
    void alone(const std::vector<std::string>& command) {
        Progress progress("times of " + std::filesystem::path(command.front()).filename().string());
        ChangedProfiles changed(store_);
        server_.run({{command, request_.device}}, "times", [&] { progress.show(-1); });
        const size_t kernels = changed.profiles().size();
        if (kernels == 0)
            throw Failure(
                fmt::format("{} launched no kernel by way of smt: {}", command.front(), server_.printed(0)));
        keys_.insert(changed.keys().begin(), changed.keys().end());
        progress.end(fmt::format("{} kernels", kernels));
    }

    void side_by_side() {
        Progress progress("side by side");
        const std::vector<MeasuringServer::Program> both = {{request_.commands[0], request_.device},
                                                            {request_.commands[1], request_.device}};
        int runs = 0;
        bool missing = true;
        int64_t reached = windows();
        for (int fruitless = 0; missing && runs < request_.most_runs && fruitless < kFruitlessRuns; ++runs) {
            server_.run(both, "pairs", [&] { progress.show(-1); });
            missing = !server_.side_by_side().ends_with(runtime::profiles::kNothingMissing);
            const int64_t now = windows();
            fruitless = now > reached ? 0 : fruitless + 1;
            reached = now;
        }
        progress.end(fmt::format("{} runs: {}", runs, server_.side_by_side()));
    }

    std::vector<Profile> profiles() {
        std::vector<Profile> all = take(store_.list());
        std::erase_if(all, [&](const Profile& each) { return !keys_.contains(each.key); });
        return all;
    }

    // Of our kernels beside our kernels, by any server.
    int64_t windows() {
        int64_t sum = 0;
        for (const Profile& each : profiles()) {
            for (const auto& [company, time] : each.beside)
                sum += keys_.contains(company.other) ? time.windows : 0;
        }
        return sum;
    }

    const PairRequest& request_;
    profiler::Store& store_;
    MeasuringServer server_;
    std::set<Key> keys_;
};

}  // namespace

std::vector<Profile> measure_pair(const PairRequest& request, profiler::Store& store) {
    return PairMeasurement(request, store).run();
}

}  // namespace smt::tools
