// See profile_run.h.
#include "tools/smt/profile_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "runtime/profiles/plan.h"
#include "tools/smt/command.h"
#include "tools/smt/measuring_server.h"
#include "tools/smt/profile_rows.h"
#include "tools/smt/profile_store.h"

namespace smt::tools {

using profiler::Profile;

namespace {

constexpr uint32_t kStopsOnly = 2147483648u;  // SMT_STRESS: stops, and nothing else

class Measurement {
public:
    Measurement(const ProfileRequest& request, profiler::Store& store)
        : request_(request), store_(store), ours_(store) {}

    std::vector<Profile> run() {
        once("times", "times");
        if (ours_.profiles().empty())
            throw Failure("the program launched no kernel by way of smt: " + server_.printed(0));
        if (request_.counters) once("counters", "counters");
        if (request_.sweep) {
            repeat("sweep", "sweep", "", [this] { return swept(); });
            int seed = 0;
            if (request_.stops) repeat("stops", "", "stops", [this] { return stopped(); }, &seed);
        }
        for (const Profile& fitted : fitted_durations(take(store_.list()))) {
            if (auto problem = store_.record(fitted)) throw Failure(problem->text);
        }
        return ours_.profiles();
    }

private:
    void go(const std::string& profile, const std::string& stress, const std::function<void()>& tick) {
        server_.run({{request_.command, request_.device, stress}}, profile, tick);
    }

    void once(const std::string& name, const std::string& profile) {
        Progress progress(name);
        go(profile, "", [&] { progress.show(-1); });
        progress.end(fmt::format("{} kernels", ours_.profiles().size()));
    }

    void repeat(const std::string& name, const std::string& profile, const std::string& stress,
                const std::function<double()>& done, int* seed = nullptr) {
        Progress progress(name);
        double reached = done();
        int runs = 0;
        for (int fruitless = 0; reached < 1 && runs < request_.most_runs && fruitless < kFruitlessRuns;
             ++runs) {
            go(profile, stress.empty() ? "" : std::to_string(kStopsOnly + static_cast<uint32_t>(++*seed)),
               [&] { progress.show(done()); });
            const double now = done();
            fruitless = now > reached ? 0 : fruitless + 1;
            reached = now;
        }
        progress.end(fmt::format("{:.0f} % in {} runs", reached * 100, runs));
    }

    // 0 to 1, over the managed kernels; 1 if there are none.
    double part(const std::function<std::pair<int64_t, int64_t>(const Profile&)>& of) {
        int64_t have = 0, want = 0;
        for (const Profile& each : ours_.profiles()) {
            const auto managed = each.coefficients.find("managed");
            if (managed == each.coefficients.end() || managed->second == 0 || !each.resources) continue;
            const auto [has, wants] = of(each);
            have += std::min(has, wants);
            want += wants;
        }
        return want ? static_cast<double>(have) / static_cast<double>(want) : 1;
    }

    double swept() {
        return part([](const Profile& profile) {
            int64_t have = 0, want = 0;
            const int sms = static_cast<int>(profile.coefficients.at("device.multiprocessors"));
            const int most = static_cast<int>(profile.resources->most_ctas_per_sm);
            for (const profiler::Placement& place : runtime::profiles::placements(sms, most)) {
                const auto found = profile.times.find(place);
                const int64_t wanted = runtime::profiles::samples_wanted(place, sms, most);
                have += found == profile.times.end() ? 0 : std::min(found->second.launches, wanted);
                want += wanted;
            }
            return std::pair{have, want};
        });
    }
    double stopped() {
        return part(
            [this](const Profile& profile) { return std::pair{profile.preemption.stops, request_.stops}; });
    }

    const ProfileRequest& request_;
    profiler::Store& store_;
    MeasuringServer server_;
    ChangedProfiles ours_;
};

}  // namespace

std::vector<Profile> measure_program(const ProfileRequest& request, profiler::Store& store) {
    return Measurement(request, store).run();
}

}  // namespace smt::tools
