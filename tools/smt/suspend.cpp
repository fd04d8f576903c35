// smt suspend: a tenant's device memory leaves the GPU, while its programs wait.
#include <fmt/core.h>

#include <cmath>
#include <cstdlib>

#include "tools/smt/suspension.h"

namespace smt::tools {
namespace {

constexpr double kPatience = 10, kLongestPatience = 24 * 3600;  // seconds

uint32_t parse_patience(const std::string* text) {
    if (!text) return static_cast<uint32_t>(kPatience * 1000);
    char* end = nullptr;
    const double seconds = std::strtod(text->c_str(), &end);
    if (text->empty() || *end || !std::isfinite(seconds) || seconds < 0 || seconds > kLongestPatience)
        throw Misuse(fmt::format("--timeout wants seconds, 0 to {}, not '{}'", kLongestPatience, *text));
    return static_cast<uint32_t>(std::lround(seconds * 1000));
}

std::string suspended_line(const std::string& tenant, const protocol::SuspendReply& reply) {
    return fmt::format("tenant {} is suspended: {} in {} host memory{}, {} stay on the GPU, after {:.3f} s\n",
                       tenant, size_text(reply.moved_bytes), reply.pinned ? "pinned" : "pageable",
                       reply.file_bytes ? " and files" : "", size_text(reply.stay_bytes),
                       static_cast<double>(reply.took_ns) / 1e9);
}

int run_suspend(const Arguments& arguments) {
    const Options options = parse_options(arguments, {"--json"}, {"--timeout"}, Operands::kMixed);
    protocol::SuspendRequest request;
    request.patience_ms = parse_patience(options.value("--timeout"));
    return ask_for_tenant(options, request, suspended_line);
}

}  // namespace

const Command suspend_command = {
    "suspend",
    "smt suspend TENANT [--timeout SECONDS] [--json]\n"
    "\n"
    "  The tenant's device memory moves to host memory; calls of its programs wait until smt resume.\n"
    "\n"
    "  --timeout SECONDS  how long its work on the GPU may take to stop or to end (10)\n"
    "  --json             a line of JSON",
    "moves a tenant's device memory to host memory, while its programs wait", run_suspend};

}  // namespace smt::tools
