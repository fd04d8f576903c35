// smt-metrics: see README.md.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <exception>

#include "runtime/settings/config.h"
#include "tools/http/endpoint.h"
#include "tools/http/signals.h"
#include "tools/metrics/collector.h"
#include "tools/smt/command.h"

namespace smt::tools::metrics {
namespace {

constexpr std::chrono::seconds kBetweenReads{1};  // a journal has room for 262,144 entries

http::Answer answer(const http::Request& request, Collector& collector) {
    if (!request.reads())
        return {.status = 405, .text = "only GET is answered\n", .headers = {{"Allow", "GET, HEAD"}}};
    if (request.path != "/metrics") return {.status = 404, .text = "the figures are at /metrics\n"};
    return {.type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
            .text = collector.collect()};
}

// Until the process is told to end.
void serve(const http::Where& where) {
    const http::EndSignals ends;
    Collector collector;
    const http::Endpoint endpoint(where, 0,
                                  [&](const http::Request& request) { return answer(request, collector); });
    const bool is_file = where.kind == http::Where::Kind::kUnix;
    fmt::print("{}{}\n", endpoint.address(), is_file ? "" : "/metrics");
    std::fflush(stdout);
    do collector.follow();
    while (!ends.came_within(kBetweenReads));
}

int run(const Arguments& arguments) {
    const Options options = parse_options(arguments, {}, {"--listen"});
    if (const std::string* where = options.value("--listen"))
        serve(http::parse_where(*where));
    else
        fmt::print("{}", Collector().collect());
    return 0;
}

}  // namespace
}  // namespace smt::tools::metrics

int main(int count, char** arguments) {
    try {
        smt::settings::Config::read().apply();
        return smt::tools::metrics::run({arguments + 1, arguments + count});
    } catch (const smt::tools::Misuse& misuse) {
        fmt::print(stderr, "smt metrics: {}\nusage: {}\n", misuse.what(), smt::tools::metrics_command.usage);
        return 2;
    } catch (const std::exception& failure) {
        fmt::print(stderr, "smt metrics: {}\n", failure.what());
        return 1;
    }
}
