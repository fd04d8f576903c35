// Loads PTX, which this driver does not take, and stays for a line.
#include "program.h"

int main() {
    preload::start();
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module,
                           ".version 8.0\n.target sm_90\n.address_size 64\n"
                           ".visible .entry k(.param .u64 p) { .reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
                           "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; st.global.u32 [%rd1], %r1;\n"
                           "ret; }\n"));
    preload::say("loaded");
    std::getchar();
    CHECK(cuModuleUnload(module));
    return 0;
}
