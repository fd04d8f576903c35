#include "runtime/server/handlers/code/variable_move.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/jit/digest.h"
#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

namespace {

std::string layout_of(const image::ManagedPlan& plan) {
    std::string all;
    for (const auto& [name, variable] : plan.variables)
        all += fmt::format("{} {} {}\n", name, variable.offset, variable.bytes);
    return all;
}

}  // namespace

VariableMove::VariableMove(Call& call, const jit::Opened& opened)
    : call_(call),
      opened_(opened),
      active_((call.session.server().expects_takeover() || call.session.fence()) &&
              (opened.moved.bytes != 0 || opened.unplaced)) {}

VariableMove::~VariableMove() {
    if (placed_) call_.session.device().place_variables(nullptr);
    give_back();
}

void VariableMove::give_back() {
    if (fresh_) call_.session.memory().free(memory_);
    fresh_ = false;
    memory_ = 0;
}

// What function pointers and tables in variables say is of that very code, so it is part of the layout.
CUresult VariableMove::begin(std::vector<char>& code) {
    if (!active_) return end();
    code_ = jit::digest({{code.data(), code.size()}});
    if (opened_.moved.bytes != 0) return move_in_cubin(code);
    placed_ = call_.session.device().place_variables(
        [this](uint64_t bytes, const std::string& layout, bool all, bool* filled) {
            return place(bytes, layout, all, filled);
        });
    return CUDA_SUCCESS;
}

// False: there is no memory, or what the session has is of other variables.
bool VariableMove::take(uint64_t bytes) {
    TenantMemory& memory = call_.session.memory();
    const MovedVariables* const taken = call_.session.code().taken_variables();
    if (!taken) return fresh_ = memory.allocate(bytes, &memory_) == CUDA_SUCCESS;
    if (taken->layout() != layout_ || memory.find(taken->memory()).bytes < bytes) return false;
    memory_ = taken->memory();
    return true;
}

CUresult VariableMove::move_in_cubin(std::vector<char>& code) {
    const image::ManagedPlan& plan = opened_.moved;
    layout_ = jit::digest({code_, layout_of(plan)});
    if (!take(plan.bytes)) return call_.session.code().taken_variables() ? end() : CUDA_SUCCESS;
    all_ = true;
    if (fresh_) {
        std::vector<TenantMemory::Value> values;
        for (const image::ManagedPlan::Initial& initial : plan.initials)
            values.push_back({initial.offset, code.data() + initial.at, initial.bytes});
        SMT_TRY(call_.session.memory().write(memory_, plan.bytes, values));
    }
    redirect(plan, code, memory_);
    return CUDA_SUCCESS;
}

// Called by the device, in the load.
uint64_t VariableMove::place(uint64_t bytes, const std::string& layout, bool all, bool* filled) {
    give_back();  // of a load that failed
    all_ = all;
    layout_ = jit::digest({code_, layout});
    if (bytes == 0) return 0;
    if (take(bytes) && fresh_ && call_.session.memory().write(memory_, bytes, {}) != CUDA_SUCCESS)
        give_back();
    all_ = all && memory_ != 0;
    *filled = !fresh_;
    return memory_;
}

CUresult VariableMove::end() {
    const MovedVariables* const taken = call_.session.code().taken_variables();
    if (!taken || taken->memory() == memory_) return CUDA_SUCCESS;
    call_.session.note("an image is loaded in another form than before, whose variables are not those");
    return CUDA_ERROR_NOT_SUPPORTED;
}

void VariableMove::give(Image& image) {
    if (memory_) image.moved = MovedVariables(memory_, layout_, opened_.moved.variables);
    fresh_ = false;
    if (call_.session.server().expects_takeover())
        image.constant_names.insert(opened_.constants.begin(), opened_.constants.end());
    if (!opened_.stays.empty())
        image.variables_stay = opened_.stays;
    else if (!all_ && (opened_.unplaced || opened_.moved.bytes != 0))
        image.variables_stay = "variables that are not in its own memory (__device__, printf's texts)";
}

}  // namespace smt::runtime::server::handlers
