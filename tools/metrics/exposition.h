// OpenMetrics 1.0 text, as Prometheus reads it (https://prometheus.io/docs/specs/om/open_metrics_spec/).
//
//   Exposition out;
//   out.family("smt_tenant_launches", Type::kCounter, "Launches.");
//   out.sample("_total", {{"tenant", "alice"}}, 12);
//   out.text()   # TYPE smt_tenant_launches counter
//                # HELP smt_tenant_launches Launches.
//                smt_tenant_launches_total{tenant="alice"} 12
//                # EOF
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace smt::tools::metrics {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

enum class Type { kGauge, kCounter, kHistogram, kInfo };

// Durations, in buckets.
class Histogram {
public:
    static const std::vector<double>& of_stops();  // bounds: 10 us to 1 s
    explicit Histogram(std::vector<double> bounds = of_stops());
    void add(double seconds);
    void add(size_t bucket, uint64_t count) { counts_.at(bucket) += count; }
    void add_sum(double seconds) { sum_ += seconds; }
    const std::vector<double>& bounds() const { return bounds_; }    // seconds, ascending; the last has none
    const std::vector<uint64_t>& counts() const { return counts_; }  // of each bucket alone
    uint64_t count() const;
    double sum() const { return sum_; }

private:
    std::vector<double> bounds_;
    std::vector<uint64_t> counts_;
    double sum_ = 0;
};

class Exposition {
public:
    // All samples of a family follow it. `help`: one sentence.
    void family(std::string_view name, Type type, std::string_view help);
    // suffix: "_total" for counters, "_info" for info, "" for gauges.
    void sample(std::string_view suffix, const Labels& labels, double value);
    void histogram(const Labels& labels, const Histogram& values);
    std::string text() const { return text_ + "# EOF\n"; }

private:
    std::string family_;
    std::string text_;
};

}  // namespace smt::tools::metrics
