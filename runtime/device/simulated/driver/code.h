// PTX as the simulated driver keeps it: an image is a linked module, its functions are decoded at their
// first use, and a launch holds on to the code it runs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "runtime/device/hosted/backend.h"
#include "runtime/device/simulated/exec/kernel.h"
#include "runtime/device/simulated/machine/occupancy.h"
#include "runtime/journal/journal.h"

namespace smt::runtime::device::simulated {

// What an image holds, found or refused.
struct PtxTexts {
    std::vector<std::string> parts;             // each a module of its own
    std::map<std::string, uint32_t> registers;  // per thread, by kernel, where machine code beside it says so
};
struct Refusal {
    CUresult error = CUDA_ERROR_INVALID_IMAGE;
    std::string why;
};
std::variant<PtxTexts, Refusal> find_ptx(const void* image);
// The same of an input of the linker, whose size is known.
std::variant<PtxTexts, Refusal> find_ptx(const void* input, size_t bytes);

struct LoadedModule {
    std::atomic<bool> unloaded{false};  // a kernel that ends now ran in memory that was given back
    std::mutex decoding;
    std::unique_ptr<Module> module;
    std::map<std::string, uint32_t> registers;
};

struct PtxFunction final : hosted::Function {
    std::shared_ptr<LoadedModule> code;
    const DecodedKernel* kernel = nullptr;  // once it is prepared
    uint32_t registers = 0;

    BlockNeeds needs(uint32_t threads, size_t dynamic_shared) const;
    uint32_t most_dynamic_shared() const;  // what its attribute allows; with hosted::world()
};

struct PtxImage final : hosted::Image {
    PtxImage() = default;
    ~PtxImage() {
        if (code) code->unloaded.store(true);
    }
    std::shared_ptr<LoadedModule> code;
};

// Kept in hosted::Launch::code.
struct LaunchCode {
    std::shared_ptr<LoadedModule> module;
    const DecodedKernel* kernel = nullptr;
    uint32_t registers = 0;
    std::optional<journal::Entry> entry;  // what the server said about the launch
};

CUresult load_image(const void* image, Memory& memory, const ManagedMemory& managed,
                    const VariableMemory& variables, std::unique_ptr<hosted::Image>* loaded,
                    std::string* log);
// Decodes it; the reason goes to `log` when it cannot be run.
CUresult prepare(PtxFunction& function, std::string* log);
CUresult check_launch(hosted::Launch& launch, uint32_t multiprocessors);
int function_attribute(const PtxFunction& function, CUfunction_attribute which);

}  // namespace smt::runtime::device::simulated
