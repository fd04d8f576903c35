// What the compile worker is given, and what it gives back. Plain values; messages.h makes bytes of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewriter/device/reuse.h"
#include "rewriter/ptx/effects.h"

namespace smt::runtime::jit {

// One translation unit as a program handed it to NVRTC.
struct Source {
    std::string name;  // of the file, for messages
    std::string text;
    std::vector<std::pair<std::string, std::string>> headers;  // name and text
    std::vector<std::string> options;
    std::vector<std::string> name_expressions;
};

// What `smt index` knows of an image that nvcc made: the device's part of the source, for each architecture
// that it was compiled for.
struct Indexed {
    struct Variant {
        Source source;
        std::vector<std::string> codes;  // of the image's entries that were made so: "sm_90", "compute_90"
    };
    std::vector<Variant> variants;
    std::vector<std::string> variables;  // that the program's host side asks for by name
};

// What the text of an order is.
enum class Language : uint32_t {
    kCuda = 1,
    kPtx = 2,       // of an image without source; headers, options and name expressions mean nothing
    kAssembly = 3,  // machine code is made of one input, a PTX text. The source's options are nvPTXCompiler's
    kLink = 4,      // machine code is made of all inputs together. The source's options are nvJitLink's
};

// What machine code is made of.
struct Input {
    uint32_t type = 0;    // CUjitInputType
    uint32_t packed = 0;  // image::Compression, of an image's entry
    uint64_t bytes = 0;   // unpacked
    std::string name;     // for messages
    std::string data;
};

// Why there is no machine code.
enum class Trouble : uint32_t {
    kNone,     // there is, or the worker is the reason
    kMissing,  // there is no compiler, or no linker
    kInvalid,  // of the input
    kTooNew,   // PTX of a later version than the compiler's
};

// What kind of image is wanted: the kind that the program itself took.
enum class Form : uint32_t { kPtx = 1, kCubin = 2 };

struct Order {
    Source source;
    Form form = Form::kPtx;
    std::string architecture;  // "sm_90" in place of the source's own option; empty: as the source says. Of
                               // PTX: of the device
    Language language = Language::kCuda;
    // Of a thread, by kernel, in the program's own machine code. Of kAssembly: the input is fenced, and its
    // blocks are to be as large as the own form's (worker/block_sizes.h).
    std::map<std::string, uint32_t> registers = {};
    // Of the image, beside a source that was indexed, or beside fenced PTX; empty: it has none of use.
    std::string ptx = {};
    std::string directory = {};  // that the source was compiled in; empty: it includes nothing relative
    std::vector<Input> inputs = {};
    std::string proves = {};  // identity_of() the image that the source must make as it stands; empty: any
    std::string image =
        {};  // the program's own, that what is made must lack nothing of; of PTX and machine code: empty
    std::vector<std::string> variables = {};  // that the managed image must have, whatever the image shows
    bool inside = false;                      // managed forms by PTX get checks inside their blocks
};

struct CompiledKernel {
    std::string name;              // as written
    std::string symbol;            // mangled
    std::string managed;           // symbol of the managed form; empty: refused
    std::string reason;            // why it was refused
    Reuse reuse = Reuse::kAlways;  // of its workers
    bool system_atomics = false;   // for the whole system; known where its PTX was read,
    bool waits = false;            // and so is whether a block of it may wait for another one
    // Of a managed form with checks inside its blocks (rewriter/ptx/persistent/inside.h).
    std::optional<ptx::Effects> checked = {};
    std::string unchecked = {};  // why it has none, if it was to have them
};

// Either an image, which holds all that the program's own does and the managed forms besides, or a reason
// why there is none. `kernels` is there in both cases, as far as the text could be read.
struct Result {
    std::string image;
    std::vector<CompiledKernel> kernels;
    std::string reason;
    std::string log;                      // of the compiler or the assembler
    Language language = Language::kCuda;  // what was rewritten
    bool lasting =
        false;  // the same order would give the same: worth keeping. A crash or a time limit is not
    bool refuted = false;  // the source does not make the order's image: kept by this server only, since
                           // included files change
    // Made of the image's own PTX, so it stands in for the image in any program. Otherwise of the source's
    // text, which can tell its rewritten form from its own: for programs that announced this very text.
    bool shared = false;
    Trouble trouble = Trouble::kNone;
};
using ResultPointer = std::shared_ptr<const Result>;

}  // namespace smt::runtime::jit
