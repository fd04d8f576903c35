// Prints docs/ptx-instructions.md.
#include <cstdio>

#include "runtime/device/simulated/exec/table.h"

int main() {
    std::fputs(smt::runtime::device::simulated::instruction_document().c_str(), stdout);
    return 0;
}
