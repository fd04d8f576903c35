#include "runtime/server/fault_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace smt::runtime::server {

namespace {

constexpr size_t kMostNamed = 4;  // kernels of a tenant, and tenants: a program's line is short

std::string list(const std::vector<std::string>& names) {
    const size_t shown = std::min(names.size(), kMostNamed);
    const std::vector<std::string> first(names.begin(), names.begin() + static_cast<long>(shown));
    const std::string rest =
        names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : std::string();
    return fmt::format("{}{}", fmt::join(first, ", "), rest);
}

std::string describe_suspect(const Suspect& suspect) {
    if (suspect.kernels.empty()) return suspect.tenant;
    return fmt::format("{}: {} {}{}", suspect.tenant, suspect.kernels.size() == 1 ? "kernel" : "kernels",
                       list(suspect.kernels), suspect.more ? " and earlier ones" : "");
}

}  // namespace

std::string report_fault(const std::string& error, const std::string& why,
                         const std::vector<Suspect>& suspects) {
    std::vector<Suspect> left;
    for (const Suspect& each : suspects)
        if (!each.cleared()) left.push_back(each);
    if (left.empty())
        return fmt::format("{}; of which kernel is not known ({}), and no tenant has a launch under way",
                           error, why);
    if (left.size() == 1 && left[0].kernels.size() == 1 && !left[0].more)
        return fmt::format(
            "{} in kernel {} of {}: {}", error, left[0].kernels[0], left[0].tenant,
            left[0].launches == 1 ? "the only launch under way" : "no other kernel was under way");
    std::vector<std::string> described;
    for (const Suspect& each : left) described.push_back(describe_suspect(each));
    if (left.size() == 1)
        return fmt::format("{} in a kernel of {} (which one is not known: {})", error, described[0], why);
    return fmt::format("{}; of which kernel is not known ({}). Under way was work of {}", error, why,
                       fmt::join(described, "; "));
}

std::string report_cleared(const std::vector<Suspect>& suspects) {
    std::vector<std::string> cleared;
    for (const Suspect& each : suspects)
        if (each.cleared()) cleared.push_back(each.tenant);
    return cleared.empty() ? std::string() : fmt::format("It was no kernel of {}", list(cleared));
}

}  // namespace smt::runtime::server
