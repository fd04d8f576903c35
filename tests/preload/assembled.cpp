// assembled [REGISTERS]: loads PTX, which this driver does not take, and stays for a line.
#include "program.h"

namespace {

const char* const kText =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .u64 p) { .reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
    "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; st.global.u32 [%rd1], %r1; ret; }\n";

}  // namespace

int main(int count, char** arguments) {
    preload::start();
    CUmodule module = nullptr;
    CUjit_option option = CU_JIT_MAX_REGISTERS;
    void* registers = count > 1 ? reinterpret_cast<void*>(std::strtoul(arguments[1], nullptr, 10)) : nullptr;
    CHECK(cuModuleLoadDataEx(&module, kText, registers ? 1 : 0, &option, &registers));
    preload::say("loaded");
    std::getchar();
    CHECK(cuModuleUnload(module));
    return 0;
}
