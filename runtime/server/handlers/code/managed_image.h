// The managed form of an image that a program loads (runtime/jit/decision.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/jit/decision.h"
#include "runtime/server/call.h"

namespace smt::runtime::server::handlers {

// What is known, in memory or in the cache, is found at once. Otherwise waits while it is compiled, `wait` in
// SMT_COMPILE at most; a session under stress or measured waits as long as it takes. The journal has a line
// with each reason against a managed form, unless images without source are not to be managed. `choices`: of
// the image. `captures` is ModuleLoad's.
jit::Decision find_managed(Call& call, std::string_view image, jit::Choices choices, uint32_t captures);

// Whether such a load waits at all for a form that is not made.
bool waits_for_forms(Call& call);
inline constexpr const char* kNotMade = "its managed form is not made yet";  // why an image has none

size_t managed_kernels(const jit::Result& form);  // how many

// Of an image that is loaded; does not wait, and says nothing.
jit::Decision find_managed_again(Call& call, jit::Awaited awaited);

}  // namespace smt::runtime::server::handlers
