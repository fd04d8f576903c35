// Where a module's variables stand: in memory of the device's own, or in memory that the loading thread
// gives.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/simulated/exec/initializer.h"
#include "runtime/device/simulated/exec/linked.h"
#include "runtime/device/simulated/exec/memory.h"
#include "runtime/device/simulated/exec/spaces.h"

namespace smt::runtime::device::simulated {

namespace {

constexpr uint64_t kVariableAlignment = 256;

bool is_managed(const ptx::Variable& variable) {
    return std::any_of(variable.attributes.begin(), variable.attributes.end(),
                       [](const ptx::Attribute& attribute) { return attribute.name == "managed"; });
}

bool has_address(const ptx::Initializer& value) {
    return value.kind == ptx::Initializer::Kind::kSymbol ||
           std::any_of(value.elements.begin(), value.elements.end(), has_address);
}

}  // namespace

// One block for all of them. Without one they lie beside the others.
std::optional<LoadError> Module::Linked::place_managed(const ManagedMemory& managed) {
    std::vector<std::pair<Variable*, uint64_t>> places;
    uint64_t end = 0;
    for (Variable& variable : variables) {
        if (!managed || !is_managed(*variable.variable)) continue;
        if (variable.variable->linkage == ptx::Linkage::kExtern) continue;
        if (variable.bytes == 0) variable.bytes = initialised_bytes(*variable.variable);
        places.emplace_back(&variable, end);
        end += (variable.bytes + kVariableAlignment - 1) / kVariableAlignment * kVariableAlignment;
    }
    if (end == 0) return std::nullopt;
    const uint64_t block = managed(end);
    if (block == 0) return LoadError{0, fmt::format("no memory for managed variables ({} bytes)", end)};
    for (auto& [variable, offset] : places) variable->address = block + offset;
    return std::nullopt;
}

// In the order of their names, behind kVariableAlignment bytes that are no variable's.
void Module::Linked::place_others(const VariableMemory& others) {
    if (!others) return;
    std::map<std::string, Variable*> movable;
    std::set<std::string> names;
    bool all = true;
    for (Variable& each : variables) {
        const ptx::Variable& text = *each.variable;
        const bool global = text.space == ptx::Space::kGlobal && text.linkage != ptx::Linkage::kExtern;
        if (!global || each.address != 0) {
            all &= global || text.space == ptx::Space::kConstant || text.space == ptx::Space::kShared;
            continue;
        }
        if (each.bytes == 0) each.bytes = initialised_bytes(text);
        const bool stays = (text.initializer && has_address(*text.initializer)) || is_managed(text) ||
                           alignment_of(text) > kVariableAlignment;
        if (!names.insert(text.name).second)
            all = false, movable.erase(text.name);
        else if (stays)
            all = false;
        else
            movable[text.name] = &each;
    }
    std::string layout;
    std::vector<uint64_t> offsets;
    uint64_t end = kVariableAlignment;
    for (const auto& [name, variable] : movable) {
        offsets.push_back(end);
        layout += fmt::format("{} {} {}\n", name, end, variable->bytes);
        end += (variable->bytes + kVariableAlignment - 1) / kVariableAlignment * kVariableAlignment;
    }
    bool filled = false;
    const uint64_t block = others(movable.empty() ? 0 : end, layout, all, &filled);
    if (block == 0) return;
    size_t index = 0;
    for (auto& [name, variable] : movable) {
        variable->address = block + offsets[index++];
        variable->moved = true;
        variable->filled = filled;
    }
}

std::optional<LoadError> Module::Linked::place(Variable& variable) {
    const ptx::Space space = variable.variable->space;
    if (space != ptx::Space::kGlobal && space != ptx::Space::kConstant && space != ptx::Space::kTexture)
        return std::nullopt;
    const std::string& name = variable.variable->name;
    if (variable.variable->linkage == ptx::Linkage::kExtern)
        return LoadError{variable.variable->line,
                         fmt::format("{} is declared .extern and defined nowhere", name)};
    if (variable.bytes == 0) variable.bytes = initialised_bytes(*variable.variable);
    if (variable.address == 0)
        variable.address =
            memory.obtain(std::max<uint64_t>(variable.bytes, 1),
                          std::max<uint64_t>(kVariableAlignment, alignment_of(*variable.variable)));
    if (variable.address == 0)
        return LoadError{variable.variable->line,
                         fmt::format("no memory for {} ({} bytes)", name, variable.bytes)};
    globals.push_back({name, variable.address, variable.bytes, space == ptx::Space::kConstant,
                       is_managed(*variable.variable), variable.moved});
    return std::nullopt;
}

}  // namespace smt::runtime::device::simulated
