#include "runtime/jit/worker/doors.h"

#include <string>
#include <utility>
#include <variant>

#include "rewriter/machine_code/patch.h"
#include "runtime/jit/messages.h"
#include "runtime/jit/text_doors.h"
#include "runtime/jit/worker/ptx_compiler.h"

namespace smt::runtime::jit {

namespace {

using machine_code::Problem;

std::variant<std::string, Problem> assemble_prologue(const std::string& ptx,
                                                     const std::string& architecture) {
    Order order;
    order.language = Language::kAssembly;
    order.form = Form::kCubin;
    order.architecture = architecture;
    order.inputs.push_back({0, 0, ptx.size(), "", ptx});
    Result result = compile_ptx(order);
    if (result.image.empty()) return Problem{result.reason};
    return std::move(result.image);
}

machine_code::Prologues& prologues() {
    static machine_code::Prologues all(assemble_prologue);
    return all;
}

std::string put_doors(std::string_view cubin, std::vector<Door>& doors) {
    auto result = machine_code::patch(cubin, prologues(), leave_managed_forms);
    if (auto* problem = std::get_if<Problem>(&result)) {
        doors.push_back({"", std::move(problem->text), 0, 0, false});
        return "";
    }
    auto& patched = std::get<machine_code::Patched>(result);
    if (patched.entries.size() > kMostItems) return "";
    for (machine_code::PatchedEntry& entry : patched.entries)
        doors.push_back({std::move(entry.name), std::move(entry.reason), entry.own_registers,
                         entry.door_offset, entry.waits});
    return std::move(patched.cubin);
}

}  // namespace

Opened open_with_doors(const OpenOrder& asked, std::string_view image) {
    if (image.empty() && asked.doors)
        prologues().get(asked.target.architecture, 2 * machine_code::kSecondPlace);  // Opener::warm()
    return open_image(asked, image, put_doors);
}

}  // namespace smt::runtime::jit
