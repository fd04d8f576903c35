// The kernels of door_kernels.cu, each in the shapes in which it is launched.
#pragma once

#include "door_bench.h"

const std::vector<Case>& cases();

// Unpatched, with no orders, in use, and with stops at random moments: a row.
void check_case(const Case& test, const char* build, CUmodule plain, CUmodule patched,
                const Streams& streams);

// Runs it again and again in one form. What fails ends the process.
enum class LaunchForm { kPlain, kNull, kUsed };
void run_form(const Case& test, CUmodule module, LaunchForm form, const Streams& streams);
