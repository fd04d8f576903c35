#include "tools/metrics/exposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace smt::tools::metrics {

namespace {

const char* name_of(Type type) {
    switch (type) {
        case Type::kGauge:
            return "gauge";
        case Type::kCounter:
            return "counter";
        case Type::kHistogram:
            return "histogram";
        case Type::kInfo:
            return "info";
    }
    return "unknown";
}

std::string escaped(std::string_view text) {
    std::string all;
    for (const char each : text) {
        if (each == '\\' || each == '"') all += '\\';
        all += each == '\n' ? std::string("\\n") : std::string(1, each);
    }
    return all;
}

}  // namespace

const std::vector<double>& Histogram::of_stops() {
    static const std::vector<double> all{1e-5, 2.5e-5, 5e-5,  1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3,
                                         5e-3, 1e-2,   0.025, 0.05, 0.1,    0.25, 0.5,  1};
    return all;
}

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::add(double seconds) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), seconds);
    ++counts_[static_cast<size_t>(bucket - bounds_.begin())];
    sum_ += seconds;
}

uint64_t Histogram::count() const { return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0}); }

void Exposition::family(std::string_view name, Type type, std::string_view help) {
    family_ = name;
    text_ += fmt::format("# TYPE {0} {1}\n# HELP {0} {2}\n", name, name_of(type), escaped(help));
}

void Exposition::sample(std::string_view suffix, const Labels& labels, double value) {
    std::string inside;
    for (const auto& [name, text] : labels)
        inside += fmt::format("{}{}=\"{}\"", inside.empty() ? "" : ",", name, escaped(text));
    text_ += fmt::format("{}{}{{{}}} {}\n", family_, suffix, inside, value);
}

void Exposition::histogram(const Labels& labels, const Histogram& values) {
    uint64_t below = 0;
    for (size_t i = 0; i < values.counts().size(); ++i) {
        below += values.counts()[i];
        Labels bucket = labels;
        bucket.emplace_back("le",
                            i < values.bounds().size() ? fmt::format("{}", values.bounds()[i]) : "+Inf");
        sample("_bucket", bucket, static_cast<double>(below));
    }
    sample("_count", labels, static_cast<double>(values.count()));
    sample("_sum", labels, values.sum());
}

}  // namespace smt::tools::metrics
