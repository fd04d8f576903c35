// Which PTX of an image its managed form is made from, or why from none: the image stays unmanaged then; and
// which entry a device runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace smt::runtime::jit {

struct PtxChoice {
    std::string text;
    std::map<std::string, uint32_t> registers = {};  // own_registers()
    std::string reason;                              // why there is none, in words; empty: there is a text
    std::string code = {};                           // machine code that it becomes: "sm_90a"
};

// What PTX for `architecture` becomes on a device, as NVRTC names it. It has the PTX's variant where this is
// the device's: of the same architecture ('a'), or of a family ('f').
std::string machine_code_for(int device, int architecture, char variant);

// Registers of a thread, by kernel, where the image has machine code for the device; `architecture` 0: the
// image is one cubin. What cannot be read is not known.
std::map<std::string, uint32_t> own_registers(std::string_view image, int architecture = 0);

// `image`: a fatbin, a cubin or a text, not trusted. `architecture`: the device's, 90 for compute
// capability 9.0. Of more than `most_bytes` nothing is unpacked.
PtxChoice choose_ptx(std::string_view image, int architecture, uint64_t most_bytes);

// What an image is loaded into.
struct Target {
    int architecture = 0;    // 90 for compute capability 9.0
    bool text_only = false;  // it takes PTX, no machine code
    bool assembled = false;  // managed PTX becomes machine code, by the service, once it is made
};

// What Service and decide() ask of an image.
struct Choices {
    std::string
        code;  // the entry that the target runs, as NVRTC names it: "sm_90", "compute_90"; empty: none
    PtxChoice ptx;
};
Choices choices_of(std::string_view image, const Target& target, uint64_t most_ptx_bytes);

}  // namespace smt::runtime::jit
