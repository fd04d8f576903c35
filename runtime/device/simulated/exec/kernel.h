// Code ready to run: what a linked module gives its users. A Kernel belongs to its Module and lives
// as long as it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/device/simulated/exec/memory.h"

namespace smt::ptx {
struct Module;  // rewriter/ptx/syntax.h
}

namespace smt::runtime::device::simulated {

struct Dim3 {
    uint32_t x = 1;
    uint32_t y = 1;
    uint32_t z = 1;

    uint64_t count() const { return static_cast<uint64_t>(x) * y * z; }
    bool operator==(const Dim3&) const = default;
};

struct Code;  // the decoded instructions of one function: code.h

struct DecodedKernel {
    struct Parameter {
        uint32_t offset = 0;
        uint32_t bytes = 0;
    };

    std::string name;
    std::vector<Parameter> parameters;
    uint32_t parameter_bytes = 0;    // of the whole buffer
    uint32_t static_shared = 0;      // bytes
    uint32_t shared_alignment = 16;  // where dynamic shared memory begins
    uint32_t local_bytes = 0;      // per thread: its variables and those of what it calls (without recursion)
    uint32_t registers = 0;        // per thread: a liveness estimate rounded up to 8, or .maxnreg
    uint32_t max_threads = 1024;   // per block: .maxntid or .reqntid, else 1024
    Dim3 required_block{0, 0, 0};  // .reqntid; zeros: none
    uint32_t min_blocks = 0;       // .minnctapersm
    uint32_t barriers = 0;         // named barriers used, 16 when an index is not a constant
    const Code* code = nullptr;
};

struct Global {
    std::string name;
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool constant = false;
    bool managed = false;  // .attribute(.managed)
    bool moved = false;    // VariableMemory's
};

// Why a module or a function cannot be used, in words, with the PTX line (0: none in particular).
struct LoadError {
    int line = 0;
    std::string message;
};

// Zeroed memory for all .managed variables of a module, which stays its giver's; 0: there is none.
using ManagedMemory = std::function<uint64_t(uint64_t bytes)>;

// Memory for the other variables in global memory that can stand anywhere: all but those of which the first
// value has an address, and names that are there twice. It stays its giver's. Called once for a module, with
// 0 bytes if there are none. `layout`: names, places and sizes in the block. `all`: no other variable in
// global memory is left. `filled`: to be set if the memory has the variables' values; else it is zeroed. 0:
// there is none, and the variables lie beside the others.
using VariableMemory =
    std::function<uint64_t(uint64_t bytes, const std::string& layout, bool all, bool* filled)>;

// One or several parsed modules, linked into device memory: variables are placed and initialised at
// load, functions are decoded at first use, so that one exotic kernel does not spoil a library. One
// thread at a time uses a Module; its Kernels are constant.
class Module {
public:
    static std::variant<std::unique_ptr<Module>, LoadError> load(std::vector<ptx::Module> parts,
                                                                 Memory& memory,
                                                                 const ManagedMemory& managed = {},
                                                                 const VariableMemory& variables = {});
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    std::vector<std::string> kernel_names() const;  // in order of the text
    // Decodes the kernel and everything it can reach. The error names the instruction and its line.
    std::variant<const DecodedKernel*, LoadError> kernel(std::string_view name);

    const std::vector<Global>& globals() const;
    const Global* global(std::string_view name) const;

    struct Linked;  // module.cpp

private:
    explicit Module(std::unique_ptr<Linked> linked);
    std::unique_ptr<Linked> linked_;
};

}  // namespace smt::runtime::device::simulated
