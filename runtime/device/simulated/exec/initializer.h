// Initial values of module variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "rewriter/ptx/syntax.h"
#include "runtime/device/simulated/exec/kernel.h"

namespace smt::runtime::device::simulated {

using AddressOf = std::function<std::optional<uint64_t>(const std::string& name)>;

// Writes what the variable begins with; what the initialiser does not name stays zero.
std::optional<LoadError> write_initializer(const ptx::Variable& variable, std::byte* to, uint64_t bytes,
                                           const AddressOf& address_of);

// Of a variable without a first dimension, as in .b8 text[] = {104, 105, 0}.
uint64_t initialised_bytes(const ptx::Variable& variable);

}  // namespace smt::runtime::device::simulated
