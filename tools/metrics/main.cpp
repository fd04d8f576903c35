// smt-metrics: see README.md.
#include <fmt/core.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>

#include "runtime/settings/config.h"
#include "tools/metrics/collector.h"
#include "tools/metrics/endpoint.h"
#include "tools/smt/command.h"

namespace smt::tools::metrics {
namespace {

// A journal has room for 262,144 entries.
constexpr timespec kBetweenReads{.tv_sec = 1, .tv_nsec = 0};

// Until the process is told to end.
void serve(const Where& where) {
    sigset_t ends;
    sigemptyset(&ends);
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, each);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // ahead of the endpoint's thread
    Collector collector;
    const Endpoint endpoint(where, [&] { return collector.collect(); });
    fmt::print("{}\n", endpoint.address());
    std::fflush(stdout);
    do collector.follow();
    while (sigtimedwait(&ends, nullptr, &kBetweenReads) < 0);
}

int run(const Arguments& arguments) {
    const Options options = parse_options(arguments, {}, {"--listen"});
    if (const std::string* where = options.value("--listen"))
        serve(parse_where(*where));
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
