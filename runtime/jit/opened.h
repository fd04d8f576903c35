// What the server is told of an image before its driver gets it, and how it is found out: in a worker
// (opener.h), since an image is a tenant's bytes.
//
//   Opened opened = open_image(asked, bytes);
//   if (opened.problem.empty() && opened.code == Code::kCubin) ... load code_of(opened, bytes)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/image/choice.h"
#include "runtime/image/managed.h"
#include "runtime/image/printing.h"
#include "runtime/jit/ptx.h"

namespace smt::runtime::jit {

struct OpenOrder {
    image::Device device;         // as the driver chooses among entries
    Target target;                // of a managed form
    uint64_t most_ptx_bytes = 0;  // of more PTX no managed form is made
    bool prints = true;           // whether it matters which kernels print
    bool links = false;           // it is an input of the linker: checked, and its first entry named, no more
    // Kernels of the code that the target executes get the door, as far as the caller of open_image() can.
    bool doors = false;
    // The code is to be the image's PTX with fences (rewriter/ptx/fence), whatever the device would load.
    bool fences = false;
    bool moves = false;  // whether variables are to stand in the program's own memory, where that is possible
    // Whether NVIDIA's tables (__cudart_i2opi_f) are variables like others: a fence lets kernels read none
    // that is elsewhere.
    bool tables = false;
};

enum class Code : uint32_t {
    kOther,  // neither fatbin, cubin nor PTX: the driver refuses it by its first bytes
    kNone,   // nothing in it is for the device
    kCubin,  // well-formed: nothing that it says of itself lies beyond its end
    kPtx,
};

// What became of a kernel for which doors were asked.
struct Door {
    std::string kernel;      // empty: all of them
    std::string reason;      // why it has none; empty: it has, and the rest counts
    uint32_t registers = 0;  // of a thread, without it; 0: not known
    uint32_t offset = 0;     // of its DoorLaunch among the parameters (rewriter/device/door.h)
    bool waits = false;      // it may wait for other CTAs
};

// What became of a function for which fences were asked, in the order of records (FenceAccess::function).
struct FencedFunction {
    std::string name;
    std::string reason;  // why it is refused, in words that follow "it"; empty: it is fenced
};

// What is known of the program's own kernels, where fenced ones took their place (worker/block_sizes.h).
struct OwnForm {
    std::map<std::string, uint32_t> registers = {};  // of a thread, by kernel, in the machine code
    std::string ptx = {};  // for the other kernels; empty: there are none, or the device executes PTX
};

struct Opened {
    std::string problem;  // why it is not loaded, in words; empty: it may be. The rest then means nothing
    Code code = Code::kOther;
    // The code that the device loads: this part of the image, unless `unpacked` has it. Of the other kinds
    // the whole image.
    uint64_t at = 0, bytes = 0;
    std::string unpacked;
    int architecture = 0;  // of the code
    char variant = 0;      // image::Entry's
    // Of the code.
    image::Printing printing;
    uint64_t variable_bytes = 0;
    image::ManagedPlan managed;  // of a cubin
    std::vector<Door> doors;
    std::vector<FencedFunction> fenced;
    OwnForm own;  // of a fenced image
    // If OpenOrder::moves, of the code, for a process that loads it again.
    image::ManagedPlan moved;            // of a cubin (image/movable.h)
    std::string stays;                   // what of the rest kernels refer to, for people; empty: nothing
    bool unplaced = false;               // of PTX: kernels use variables. Their device may place them
    std::vector<std::string> constants;  // names of __constant__ variables
    // Of the image's PTX where it has one for the device, else of the code: whether functions refer to
    // variables of the image, so that a second copy of it would be another image
    // (runtime/image/variable_uses.h).
    bool uses_variables = false;
    std::set<std::string, std::less<>> system_atomics;  // kernels that have some, by the image's PTX
    // Of the whole image.
    Choices choices;
};

// Puts the door into a cubin, or a PTX text for a target that takes text only: what is loaded in its place,
// with what became of its kernels in `doors`. Empty: no kernel of it got one, and `doors` says why.
using PutDoors = std::string (*)(std::string_view code, std::vector<Door>& doors);

// The bytes are not trusted. Memory is taken for what is unpacked, image::kMostBytes at most for each entry.
[[nodiscard]] Opened open_image(const OpenOrder& asked, std::string_view image, PutDoors put_doors = nullptr);

// `image` is the one that was opened.
std::string_view code_of(const Opened& opened, std::string_view image);

// By its first bytes: open_image() reads no more of it, and there is nothing to unpack or to misread.
bool is_no_image(std::string_view bytes);

}  // namespace smt::runtime::jit
