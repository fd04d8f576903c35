// smt coverage: every entry point of the driver and how it is treated, from the table libsmt.so is
// generated from; with --runtime those of our CUDA runtime for the simulated device.
#include <fmt/core.h>

#include <map>
#include <span>
#include <string>

#include "coverage.gen.h"
#include "cudart_coverage.gen.h"
#include "tools/smt/command.h"
#include "tools/smt/json.h"

namespace smt::tools {
namespace {

const char* meaning(const std::string& treatment) {
    static const std::map<std::string, const char*> kMeanings = {
        {"remote", "the server answers"},
        {"async", "the server, without waiting for it"},
        {"written", "written by hand"},
        {"early", "written by hand, works before cuInit"},
        {"older", "an older form of a function, written by hand"},
        {"alias", "another name of a function above"},
        {"real", "the real driver in the program, or the server"},
        {"driver", "a call of the driver"},
        {"ordered", "written by hand, once for the waiting and the asynchronous form"},
        {"bare", "written by hand, works without a device"},
        {"unsupported", "returns NOT_SUPPORTED, counted"},
    };
    auto found = kMeanings.find(treatment);
    return found == kMeanings.end() ? "" : found->second;
}

void print_json(std::span<const CoverageLine> lines, const std::map<std::string, size_t>& totals) {
    fmt::print("{{\"functions\":[\n");
    const char* separator = "";
    for (const CoverageLine& line : lines) {
        fmt::print(R"({}  {{"function":{},"area":{},"treatment":{}}})", separator, json_string(line.symbol),
                   json_string(line.area), json_string(line.treatment));
        separator = ",\n";
    }
    fmt::print("\n],\"totals\":{{");
    separator = "";
    for (const auto& [treatment, count] : totals) {
        fmt::print("{}{}:{}", separator, json_string(treatment), count);
        separator = ",";
    }
    fmt::print("}}}}\n");
}

void print_text(const char* what, std::span<const CoverageLine> lines,
                const std::map<std::string, size_t>& totals) {
    for (const CoverageLine& line : lines)
        fmt::print("{:<48} {:<16} {}\n", line.symbol, line.area, line.treatment);
    std::string counts;
    fmt::print("\n");
    for (const auto& [treatment, count] : totals) {
        fmt::print("{:<12} {:>4}  {}\n", treatment, count, meaning(treatment));
        counts += fmt::format(", {} {}", count, treatment);
    }
    size_t unsupported = totals.count("unsupported") ? totals.at("unsupported") : 0;
    fmt::print("total: {} {} functions, {} supported{}\n", lines.size(), what, lines.size() - unsupported,
               counts);
}

int run_coverage(const Arguments& arguments) {
    Options options = parse_options(arguments, {"--json", "--runtime"}, {});
    bool runtime = options.has("--runtime");
    std::span<const CoverageLine> lines = kCoverage;
    if (runtime) lines = kRuntimeCoverage;
    std::map<std::string, size_t> totals;
    for (const CoverageLine& line : lines) ++totals[line.treatment];
    options.has("--json") ? print_json(lines, totals)
                          : print_text(runtime ? "runtime" : "driver", lines, totals);
    return 0;
}

}  // namespace

const Command coverage_command = {"coverage", "smt coverage [--runtime] [--json]",
                                  "lists every driver function, or runtime function, and how it is treated",
                                  run_coverage};

}  // namespace smt::tools
