// smt metrics: figures for Prometheus. A program of its own beside this one, because it links an HTTP server.
#include "tools/smt/become.h"

namespace smt::tools {
namespace {

int run_metrics(const Arguments& arguments) {
    become("smt-metrics", arguments, "where CMake finds libmicrohttpd's development files");
}

}  // namespace

const Command metrics_command = {
    "metrics",
    "smt metrics [--listen WHERE]\n"
    "\n"
    "  --listen WHERE  answers GET /metrics until it is interrupted; WHERE is PORT, 127.0.0.1:PORT,\n"
    "                  [::1]:PORT or unix:PATH. Port 0: one that is free. Without it the figures are printed "
    "once\n"
    "\n"
    "The figures are of all servers of this user, by tenant, in OpenMetrics text: memory, launches, GPU "
    "time,\n"
    "stops, unsupported calls (docs/usage.md). Every user of this machine can read what a port answers",
    "figures of all tenants for Prometheus", run_metrics};

}  // namespace smt::tools
