// One maker for each policy; registry.cpp lists them.
#pragma once

#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

std::unique_ptr<Policy> make_fifo();
std::unique_ptr<Policy> make_priority();
std::unique_ptr<Policy> make_priority_whole();

}  // namespace smt::runtime::schedule
