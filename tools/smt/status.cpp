// smt status: the tenants that share the GPU now.
#include <cstdio>

#include "tools/smt/command.h"
#include "tools/smt/status_view.h"

namespace smt::tools {
namespace {

int run_status(const Arguments& arguments) {
    const Options options = parse_options(arguments, {"--json", "--memory"}, {});
    if (options.has("--json") && options.has("--memory"))
        throw Misuse("--json has the figures of --memory, too");
    StatusView view;
    const std::string text = options.has("--json")     ? view.json()
                             : options.has("--memory") ? view.memory_text()
                                                       : view.text();
    std::fputs(text.c_str(), stdout);
    return 0;
}

}  // namespace

const Command status_command = {
    "status",
    "smt status [--json | --memory]\n"
    "\n"
    "  --json    a line of JSON for each server\n"
    "  --memory  what each program's device memory is used for, in MiB: what it asked for, what is lost to "
    "rounding\n"
    "            and gaps, what is idle, and other memory (arrays, variables, its own mappings)",
    "shows the tenants on the GPU: memory, launches, share of the SMs, and how targets are kept", run_status};

}  // namespace smt::tools
