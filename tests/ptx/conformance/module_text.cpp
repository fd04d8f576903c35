#include <sstream>

#include "tests/ptx/conformance/case_file.h"

namespace smt::conformance {
namespace {

const char* storage(int bits) {
    switch (bits) {
        case 1:
            return ".pred";
        case 16:
            return ".b16";
        case 32:
            return ".b32";
        case 64:
            return ".b64";
        default:
            return ".b128";
    }
}

void declare(std::ostream& out, const std::string& prefix, const std::vector<std::string>& types) {
    for (size_t i = 0; i < types.size(); ++i)
        out << "    .reg " << storage(bits_of(types[i])) << " %" << prefix << i << ";\n";
}

void load_input(std::ostream& out, size_t i, int bits, size_t threads) {
    const size_t offset = 16 * i * threads;
    const std::string address = "[%slot_in+" + std::to_string(offset) + "]";
    if (bits == 1) {
        out << "    ld.global.b32 %word, " << address << ";\n    setp.ne.b32 %i" << i << ", %word, 0;\n";
    } else if (bits == 128) {
        out << "    ld.global.v2.b64 {%low, %high}, " << address << ";\n    mov.b128 %i" << i
            << ", {%low, %high};\n";
    } else {
        out << "    ld.global.b" << bits << " %i" << i << ", " << address << ";\n";
    }
}

void store_output(std::ostream& out, size_t i, int bits, size_t threads) {
    const size_t offset = 16 * i * threads;
    const std::string address = "[%slot_out+" + std::to_string(offset) + "]";
    const std::string register_name = "%o" + std::to_string(i);
    // The whole slot, so that what was there before is told from any result.
    out << "    st.global.v2.b64 " << address << ", {%zero, %zero};\n";
    if (bits == 1)
        out << "    selp.b32 %word, 1, 0, " << register_name << ";\n    st.global.b32 " << address
            << ", %word;\n";
    else if (bits == 128)
        out << "    mov.b128 {%low, %high}, " << register_name << ";\n    st.global.v2.b64 " << address
            << ", {%low, %high};\n";
    else
        out << "    st.global.b" << bits << " " << address << ", " << register_name << ";\n";
}

}  // namespace

std::string module_text(const Case& one) {
    std::ostringstream out;
    out << ".version 8.5\n.target sm_90\n.address_size 64\n" << one.module;
    out << ".visible .entry test(.param .u64 inputs, .param .u64 outputs)\n{\n";
    declare(out, "i", one.inputs);
    declare(out, "o", one.outputs);
    out << "    .reg .b64 %in, %out, %slot_in, %slot_out, %offset, %low, %high, %zero;\n    .reg .b32 "
           "%thread, %word;\n"
           "    .reg .pred %p<16>;\n    .reg .b16 %h<32>;\n    .reg .b32 %r<64>;\n    .reg .f32 %f<32>;\n    "
           ".reg .b64 %rd<64>;\n"
           "    .reg .f64 %fd<16>;\n"
           "    ld.param.u64 %in, [inputs];\n    ld.param.u64 %out, [outputs];\n    cvta.to.global.u64 %in, "
           "%in;\n"
           "    cvta.to.global.u64 %out, %out;\n    mov.u32 %thread, %tid.x;\n    mul.wide.u32 %offset, "
           "%thread, 16;\n"
           "    add.u64 %slot_in, %in, %offset;\n    add.u64 %slot_out, %out, %offset;\n    mov.u64 %zero, "
           "0;\n";
    for (size_t i = 0; i < one.inputs.size(); ++i)
        load_input(out, i, bits_of(one.inputs[i]), one.rows.size());
    out << one.body;
    for (size_t i = 0; i < one.outputs.size(); ++i)
        store_output(out, i, bits_of(one.outputs[i]), one.rows.size());
    out << "    ret;\n}\n";
    return out.str();
}

}  // namespace smt::conformance
