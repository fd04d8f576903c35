// What the parts of door_check share.
#pragma once

#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "door_driver.h"
#include "rewriter/device/door.h"
#include "rewriter/machine_code/patch.h"

extern std::FILE* rows;
extern int failures;

// A line of JSON, to the file and to stdout.
template <typename... Values>
void row(const char* format, Values... values) {
    for (std::FILE* file : {rows, stdout}) {
        std::fprintf(file, format, values...);
        std::fputc('\n', file);
        std::fflush(file);
    }
}

std::variant<std::string, smt::machine_code::Problem> assemble_with_ptxas(const std::string& ptx,
                                                                          const std::string& architecture);

// Loads every cubin for sm_90 in the file, patched; and as it is where the driver refuses that. Stops after
// as many seconds.
void check_library(const std::string& path, double seconds, smt::machine_code::Prologues& prologues);
