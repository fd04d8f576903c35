// smt resume: a suspended tenant's memory comes back, and its programs go on.
#include <fmt/core.h>

#include "tools/smt/suspension.h"

namespace smt::tools {
namespace {

std::string resumed_line(const std::string& tenant, const protocol::SuspendReply& reply) {
    return fmt::format("tenant {} goes on: {} are on the GPU again, after {:.3f} s\n", tenant,
                       size_text(reply.moved_bytes), static_cast<double>(reply.took_ns) / 1e9);
}

int run_resume(const Arguments& arguments) {
    protocol::SuspendRequest request;
    request.kind = protocol::ControlKind::kResume;
    return ask_for_tenant(parse_options(arguments, {"--json"}, {}, Operands::kMixed), request, resumed_line);
}

}  // namespace

const Command resume_command = {
    "resume",
    "smt resume TENANT [--json]\n"
    "\n"
    "  --json  a line of JSON",
    "moves the memory of a suspended tenant back to the GPU, and its programs go on", run_resume};

}  // namespace smt::tools
