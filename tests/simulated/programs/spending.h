// Kernels whose blocks are there for a time and do nothing: two disturb each other by nothing but the room
// that they take, and so much time costs the host that simulates it nothing.
#pragma once

#include <initializer_list>
#include <string>

namespace spending {

// `name` takes `before`, parameters as in PTX, and the nanoseconds. Its blocks look at the clock at such
// intervals.
struct Kernel {
    std::string name, before;
    unsigned every_ns;
};

inline std::string image_of(std::initializer_list<Kernel> kernels) {
    std::string text =
        ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 4 .b8 room[];\n";
    for (const Kernel& kernel : kernels) {
        text += ".visible .entry " + kernel.name + "(" + kernel.before + ".param .u64 nanoseconds)" + R"(
{
    .reg .pred %p;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [nanoseconds];
    mov.u64 %rd1, %globaltimer;
again:
    nanosleep.u32 )" +
                std::to_string(kernel.every_ns) +
                R"(;
    mov.u64 %rd2, %globaltimer;
    sub.s64 %rd2, %rd2, %rd1;
    setp.lt.u64 %p, %rd2, %rd0;
    @%p bra again;
    ret;
}
)";
    }
    return text;
}

}  // namespace spending
