// smt status: the tenants that share the GPU now.
#include <cstdio>

#include "tools/smt/command.h"
#include "tools/smt/status_view.h"

namespace smt::tools {
namespace {

int run_status(const Arguments& arguments) {
    parse_options(arguments, {}, {});
    std::fputs(StatusView().text().c_str(), stdout);
    return 0;
}

}  // namespace

const Command status_command = {
    "status", "smt status", "shows the tenants on the GPU: memory, launches, share of the SMs", run_status};

}  // namespace smt::tools
