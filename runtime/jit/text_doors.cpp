#include "runtime/jit/text_doors.h"

#include <utility>
#include <variant>

#include "rewriter/ptx/door.h"

namespace smt::runtime::jit {

std::string put_doors_into_text(std::string_view text, std::vector<Door>& doors) {
    auto result = ptx::put_doors(text, leave_managed_forms);
    auto* with_doors = std::get_if<ptx::WithDoors>(&result);
    if (!with_doors) return "";
    for (ptx::DoorEntry& entry : with_doors->entries)
        doors.push_back({std::move(entry.name), std::move(entry.reason), 0, entry.offset, entry.waits});
    return std::move(with_doors->text);
}

std::string_view leave_managed_forms(std::string_view name) {
    constexpr std::string_view kWrittenInC = "smt_", kLaunch = "N3smt6LaunchE";
    return name.starts_with(kWrittenInC) || name.ends_with(kLaunch) ? "it is a managed form" : "";
}

}  // namespace smt::runtime::jit
