// smt status: the tenants that share the GPU now.
#include <cstdio>

#include "tools/smt/command.h"
#include "tools/smt/status_view.h"

namespace smt::tools {
namespace {

int run_status(const Arguments& arguments) {
    const Options options = parse_options(arguments, {"--json"}, {});
    std::fputs((options.has("--json") ? StatusView().json() : StatusView().text()).c_str(), stdout);
    return 0;
}

}  // namespace

const Command status_command = {
    "status",
    "smt status [--json]\n"
    "\n"
    "  --json  a line of JSON for each server",
    "shows the tenants on the GPU: memory, launches, share of the SMs, and how targets are kept", run_status};

}  // namespace smt::tools
