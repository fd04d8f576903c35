// Whether each kernel with the door does what it did before, also when it is stopped, and what the door
// costs.
#include "door_cases.h"

#include <random>

namespace {

struct Stops {
    int launches = 0, stopped = 0, partly = 0, runs = 0, wrong = 0;
};

// One launch to its end, with stops at random times.
void run_with_stops(Bench& bench, Control& control, const Streams& streams, double ms, std::mt19937& random,
                    Stops& sum) {
    std::uniform_real_distribution<double> moment(0, ms * 1.1e-3);
    ++sum.launches;
    for (uint32_t run = 1;; ++run) {
        MUST(cuStreamSynchronize(streams.work));
        bench.run(streams.work, run == 1 ? &control.begin() : &control.resume());
        if (run <= 6) {
            wait_for(moment(random) / (run > 1 ? 2 : 1));
            control.stop(streams.stop);
        }
        MUST(cuStreamSynchronize(streams.work));
        MUST(cuStreamSynchronize(streams.stop));
        ++sum.runs;
        const uint32_t left = control.left();
        sum.stopped += left != 0;
        sum.partly += left != 0 && left < control.units();
        if (left == 0) return;
        if (run > 100) {
            ++sum.wrong;
            return;
        }
    }
}

// Of launches that were stopped before they began: their CTAs are refused by the frontier.
double time_when_stopped(Bench& bench, Control& control, const Streams& streams) {
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
        const DoorLaunch& door = control.begin();
        control.stop(streams.stop);
        MUST(cuStreamSynchronize(streams.stop));
        times.push_back(time_of(bench, streams.work, &door));
    }
    return median(times);
}

}  // namespace

const std::vector<Case>& cases() {
    static const std::vector<Case> all = {
        {"compute", {{20000, 1, 1}, {256, 1, 1}}, 2000},
        {"tiny", {{400000, 1, 1}, {64, 1, 1}}, 0},
        {"tiny", {{100000, 1, 1}, {32, 1, 1}}, 0},
        {"few_registers", {{50000, 2, 3}, {32, 2, 1}}, 0},
        {"compute", {{300, 40, 3}, {16, 4, 2}}, 1000},
        {"shared_barriers", {{8000, 1, 1}, {1024, 1, 1}}, 60},
        {"shared_barriers", {{20000, 1, 1}, {100, 1, 1}}, 60},
        {"named_barriers", {{10000, 1, 1}, {256, 1, 1}}, 60},
        {"dynamic_shared", {{4000, 1, 1}, {256, 1, 1}, 49152}, 500},
        {"all_registers", {{8000, 1, 1}, {128, 1, 1}}, 20},
        {"bounded", {{3000, 1, 1}, {1024, 1, 1}}, 100},
        {"printing", {{20000, 1, 1}, {128, 1, 1}}, 500},
        {"no_parameters", {{8192, 1, 1}, {128, 1, 1}}, 0, 0, false},
        {"large_parameters", {{20000, 1, 1}, {128, 1, 1}}, 1000, 988 * 4},
        {"largest_parameters", {{20000, 1, 1}, {128, 1, 1}}, 1000, 1018 * 4},
        {"odd_parameters", {{20000, 1, 1}, {128, 1, 1}}, 1000, 13},
        {"looks_back", {{20000, 1, 1}, {128, 1, 1}}, 1000},
        {"early_return", {{20000, 1, 1}, {129, 1, 1}}, 1000},
        {"calling", {{20000, 1, 1}, {128, 1, 1}}, 200},
        {"clustered", {{20000, 1, 1}, {256, 1, 1}}, 1000},
        {"clustered", {{200, 31, 3}, {64, 1, 1}}, 1000},
        {"any_cluster", {{20000, 1, 1}, {128, 1, 1}, 0, 4}, 1000},
        {"any_cluster", {{2000, 3, 2}, {128, 1, 1}, 0, 8}, 1000},
        {"compute", {{20000, 1, 1}, {256, 1, 1}, 0, 2}, 1000},  // in clusters, of which it knows nothing
    };
    return all;
}

namespace {

std::vector<float> first_values(const Case& test) {
    std::vector<float> first(std::max<size_t>(test.shape.threads(), 1 << 20));
    for (size_t i = 0; i < first.size(); ++i) first[i] = static_cast<float>(i % 1021) * 0.125f;
    return first;
}

}  // namespace

void run_form(const Case& test, CUmodule module, LaunchForm form, const Streams& streams) {
    const std::vector<float> first = first_values(test);
    Bench bench(test, module, first);
    Control control(test);
    const DoorLaunch none{};
    bench.begin();
    for (int round = 0; round < 200; ++round)
        time_of(bench, streams.work,
                form == LaunchForm::kPlain  ? nullptr
                : form == LaunchForm::kUsed ? &control.begin()
                                            : &none);
}

void check_case(const Case& test, const char* build, CUmodule plain, CUmodule patched,
                const Streams& streams) {
    const std::vector<float> first = first_values(test);
    Bench before(test, plain, first), after(test, patched, first);
    Control control(test);
    const DoorLaunch none{};
    std::mt19937 random(7);

    before.begin();
    before.run(streams.work, nullptr);
    MUST(cuStreamSynchronize(streams.work));
    const auto expected = before.result();
    after.begin();
    if (const CUresult status = after.try_run(streams.work, &none); status != CUDA_SUCCESS) {
        row(R"({"part":"kernel","build":"%s","kernel":"%s","ctas":%zu,"launch":"%s"})", build, test.kernel,
            test.shape.ctas(), error_text(status));
        ++failures;
        return;
    }
    MUST(cuStreamSynchronize(streams.work));
    const bool same_null = after.result() == expected;

    std::vector<double> times[4];
    for (int round = 0; round < 20; ++round) {
        times[0].push_back(time_of(before, streams.work, nullptr));
        control.learn(times[0].back());
        times[1].push_back(time_of(after, streams.work, &none));
        times[2].push_back(time_of(after, streams.work, &control.begin()));
        control.set_exact(true);
        times[3].push_back(time_of(after, streams.work, &control.begin()));
        control.set_exact(false);
    }
    const uint32_t late = control.left();
    const double resume_of_nothing = time_of(after, streams.work, &control.none_left());

    const double stopped_before = time_when_stopped(after, control, streams);
    const bool all_refused = control.left() == control.units();

    Stops stops;
    for (int i = 0; i < 12; ++i) {
        after.begin();
        control.set_exact(i % 2 != 0, i % 4 == 3 ? 3 : 0);
        run_with_stops(after, control, streams, median(times[2]), random, stops);
        stops.wrong += after.result() != expected;
    }
    int registers[2] = {}, ctas[2] = {};
    const int threads = static_cast<int>(test.shape.block[0] * test.shape.block[1] * test.shape.block[2]);
    for (int i = 0; i < 2; ++i) {
        const CUfunction function = i ? after.function() : before.function();
        MUST(cuFuncGetAttribute(&registers[i], CU_FUNC_ATTRIBUTE_NUM_REGS, function));
        MUST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&ctas[i], function, threads, test.shape.shared));
    }
    const bool good = same_null && all_refused && stops.wrong == 0 && late == 0;
    failures += !good;
    row(R"({"part":"kernel","build":"%s","kernel":"%s","ctas":%zu,"threads":%d,"cluster":%u,)"
        R"("same_null":%s,"launches":%d,"runs":%d,"stopped":%d,"partly":%d,"wrong":%d,)"
        R"("ms":%.4f,"ms_null":%.4f,"ms_admitted":%.4f,"null":%.4f,"admitted":%.4f,"exact":%.4f,)"
        R"("ms_all_refused":%.4f,"ms_stopped_before":%.4f,"registers":[%d,%d],"ctas_per_sm":[%d,%d]})",
        build, test.kernel, test.shape.ctas(), threads, test.shape.cluster, same_null ? "true" : "false",
        stops.launches, stops.runs, stops.stopped, stops.partly, stops.wrong, median(times[0]),
        median(times[1]), median(times[2]), median(times[1]) / median(times[0]),
        median(times[2]) / median(times[0]), median(times[3]) / median(times[0]), resume_of_nothing,
        stopped_before, registers[0], registers[1], ctas[0], ctas[1]);
}
