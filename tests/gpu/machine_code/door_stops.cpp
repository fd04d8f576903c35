// What one launch costs the host, and how soon a grid ends that is stopped.
#include "door_stops.h"

#include <random>

namespace {

using Nanoseconds = int64_t;

struct Span {  // of a CTA, by the GPU's clock; both 0: it left
    Nanoseconds begin, end;
};

Nanoseconds host_now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

// Relates the GPU's clock to the host's: a kernel answers with its clock whenever the host asks.
class SameClock {
public:
    explicit SameClock(CUmodule module) {
        MUST(cuModuleGetFunction(&answer_, module, "answer"));
        MUST(cuMemHostAlloc(reinterpret_cast<void**>(&words_), sizeof *words_, CU_MEMHOSTALLOC_DEVICEMAP));
        MUST(cuMemHostGetDevicePointer(&address_, words_, 0));
    }
    SameClock(const SameClock&) = delete;
    ~SameClock() { cuMemFreeHost(words_); }

    // From now on, and not for long: the clocks drift apart.
    void set(CUstream stream) {
        int count = kQuestions;
        void* parameters[] = {&address_, &count};
        words_->question = 0;
        MUST(launch(answer_, {{1, 1, 1}, {1, 1, 1}}, stream, parameters));
        shortest_ = INT64_MAX;
        for (int i = 1; i <= kQuestions; ++i) {
            words_->time = 0;
            const Nanoseconds asked = host_now();
            words_->question = i;
            while (words_->time == 0) {
            }
            const Nanoseconds answered = host_now();
            if (answered - asked >= shortest_) continue;
            shortest_ = answered - asked;
            ahead_ = static_cast<Nanoseconds>(words_->time) - (asked + answered) / 2;
        }
        MUST(cuStreamSynchronize(stream));
    }
    Nanoseconds on_host(Nanoseconds gpu) const { return gpu - ahead_; }
    Nanoseconds shortest() const { return shortest_; }  // question and answer: half of it is in doubt

private:
    static constexpr int kQuestions = 60;
    struct Words {
        volatile int question;
        volatile unsigned long long time;
    };
    Words* words_ = nullptr;
    CUdeviceptr address_ = 0;
    CUfunction answer_ = nullptr;
    Nanoseconds ahead_ = 0, shortest_ = 0;
};

// The kernel `timed` with the door.
class Timed {
public:
    Timed(CUmodule patched, size_t ctas, int iterations)
        : shape_{{static_cast<unsigned>(ctas), 1, 1}, {256, 1, 1}},
          control_(Case{"timed", shape_, 0}),
          spans_(ctas * sizeof(Span)),
          out_(ctas * 256 * sizeof(float)),
          iterations_(iterations) {
        MUST(cuModuleGetFunction(&function_, patched, "timed"));
        MUST(cuMemHostAlloc(reinterpret_cast<void**>(&read_), spans_.bytes(), 0));
    }
    Timed(const Timed&) = delete;
    ~Timed() { cuMemFreeHost(read_); }

    void prepare(CUstream stream) {
        MUST(cuMemsetD8Async(spans_.address(), 0, spans_.bytes(), stream));
        MUST(cuStreamSynchronize(stream));
    }
    void run(CUstream stream) {
        CUdeviceptr spans = spans_.address(), out = out_.address();
        DoorLaunch door = control_.begin();
        void* parameters[] = {&spans, &out, &iterations_, &door};
        MUST(launch(function_, shape_, stream, parameters));
    }
    // Of all CTAs; until the next call.
    const Span* spans() {
        MUST(cuMemcpyDtoH(read_, spans_.address(), spans_.bytes()));
        return read_;
    }
    Control& control() { return control_; }
    size_t ctas() const { return shape_.ctas(); }

private:
    const Launch shape_;
    Control control_;
    Buffer spans_, out_;
    int iterations_;
    CUfunction function_ = nullptr;
    Span* read_ = nullptr;
};

// In microseconds, of each stop.
struct StopTimes {
    std::vector<double> whole, longest, beyond, after_last, late, left, doubt;
    int ended_before = 0;
};

// `order` and `end`: of the launch, by the host's clock.
void take_stop(Timed& timed, const SameClock& clock, Nanoseconds order, Nanoseconds end, StopTimes& times) {
    const uint32_t left = timed.control().left();
    if (left == 0) {
        ++times.ended_before;
        return;
    }
    Nanoseconds longest = 0, last = order;
    size_t late = 0;
    const Span* spans = timed.spans();
    for (size_t i = 0; i < timed.ctas(); ++i) {
        if (spans[i].end == 0) continue;
        const Nanoseconds begun = clock.on_host(spans[i].begin), ended = clock.on_host(spans[i].end);
        if (ended < order) continue;
        last = std::max(last, ended);
        if (begun <= order)
            longest = std::max(longest, ended - begun);
        else
            ++late;
    }
    const auto us = [](Nanoseconds ns) { return static_cast<double>(ns) * 1e-3; };
    times.whole.push_back(us(end - order));
    times.longest.push_back(us(longest));
    times.beyond.push_back(us(end - order - longest));
    times.after_last.push_back(us(end - last));
    times.late.push_back(static_cast<double>(late));
    times.left.push_back(left);
    times.doubt.push_back(us(clock.shortest()) / 2);
}

std::string spread(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto at = [&](double part) {
        return values.empty() ? 0.0 : values[static_cast<size_t>(part * (values.size() - 1) + 0.5)];
    };
    char text[120];
    std::snprintf(text, sizeof text, "[%.2f,%.2f,%.2f,%.2f]", at(0), at(0.5), at(0.99), at(1));
    return text;
}

}  // namespace

// Launch and wait of one CTA, as the host sees it.
void check_latency(CUmodule plain, CUmodule patched, const Streams& streams) {
    const Case test = {"tiny", {{1, 1, 1}, {64, 1, 1}}, 0};
    std::vector<float> first(1 << 20, 1.0f);
    Bench before(test, plain, first), after(test, patched, first);
    Control control(test);
    const DoorLaunch none{};
    std::vector<double> times[3];
    for (int round = 0; round < 2000; ++round)
        for (int form = 0; form < 3; ++form) {
            const auto begin = Clock::now();
            if (form == 0)
                before.run(streams.work, nullptr);
            else
                after.run(streams.work, form == 1 ? &none : &control.begin());
            MUST(cuStreamSynchronize(streams.work));
            times[form].push_back(seconds_since(begin) * 1e6);
        }
    row(R"({"part":"one_cta","us":%.2f,"us_null":%.2f,"us_admitted":%.2f})", median(times[0]),
        median(times[1]), median(times[2]));
}

void check_stops(CUmodule plain, CUmodule patched, const Streams& streams, const StopCase& test) {
    Timed timed(patched, test.ctas, test.iterations);
    SameClock clock(plain);
    timed.prepare(streams.work);
    auto begin = Clock::now();
    timed.run(streams.work);
    MUST(cuStreamSynchronize(streams.work));
    begin = Clock::now();
    timed.prepare(streams.work);
    timed.run(streams.work);
    MUST(cuStreamSynchronize(streams.work));
    const double all = seconds_since(begin);
    timed.control().learn(all * 1e3);
    std::mt19937 random(11);
    std::uniform_real_distribution<double> moment(0.02 * all, 0.9 * all);
    uint32_t* stopped = nullptr;
    MUST(cuMemAllocHost(reinterpret_cast<void**>(&stopped), sizeof *stopped));
    StopTimes times;
    for (int i = 0; i < test.stops; ++i) {
        timed.prepare(streams.work);
        clock.set(streams.work);
        timed.run(streams.work);
        wait_for(moment(random));
        *stopped = timed.control().run();
        const Nanoseconds order = host_now();
        if (test.by_copy)
            MUST(cuMemcpyHtoDAsync(timed.control().address(), stopped, sizeof *stopped, streams.stop));
        else
            timed.control().stop(streams.stop);
        MUST(cuStreamSynchronize(streams.work));
        const Nanoseconds end = host_now();
        MUST(cuStreamSynchronize(streams.stop));
        take_stop(timed, clock, order, end, times);
    }
    row(R"({"part":"stop","by":"%s","ctas":%zu,"iterations":%d,"ms":%.3f,"stops":%d,"ended_before":%d,)"
        R"("of_each":"min, median, p99, max","us":%s,"us_longest_in_flight":%s,)"
        R"("us_beyond_longest":%s,"us_after_last":%s,"admitted_late":%s,"left":%s,"us_in_doubt":%s})",
        test.by_copy ? "copy" : "value", test.ctas, test.iterations, all * 1e3, test.stops,
        times.ended_before, spread(times.whole).c_str(), spread(times.longest).c_str(),
        spread(times.beyond).c_str(), spread(times.after_last).c_str(), spread(times.late).c_str(),
        spread(times.left).c_str(), spread(times.doubt).c_str());
    MUST(cuMemFreeHost(stopped));
}
