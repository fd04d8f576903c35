// What a GPU core dump says of the fault that made it: which kernel, and where in its grid.
//
// The dump is an ELF file that the driver writes (machine EM_CUDA, type ET_CORE). Its sections are tables,
// told apart by their types and tied to each other by link (the parent's section) and info (the row there);
// cudacoredump.h, which NVIDIA publishes with cuda-gdb, describes them:
//
//   multiprocessors -> CTAs -> warps -> threads     a thread has its exception, a warp the PC of an error or
//   a breakpoint grids                                           by number: kernel, module, dimensions
//   modules -> relocated cubins                     each section at the address where its code is
//
// Measured on an H100 (driver 580): an illegal load, a misaligned access and an assertion leave threads with
// an exception; a trap leaves warps at a breakpoint; an illegal store leaves the PC in the multiprocessor's
// row only, because its CTA has ended.
//
// A driver may append fields to a row, so that rows are read by the section's own row size. The bytes are not
// trusted: nothing in them is followed unchecked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "runtime/image/image.h"

namespace smt::image {

struct FaultSite {
    struct Place {
        std::array<uint32_t, 3> grid{};   // in CTAs
        std::array<uint32_t, 3> block{};  // in threads
        std::array<uint32_t, 3> cta{};    // the index of a faulting CTA
    };

    std::string kernel;  // its symbol in the cubin; empty: the dump does not tell
    uint64_t module =
        0;  // the driver's handle of the module that holds it (CUmodule); 0: the dump does not tell
    std::optional<Place> place;  // nothing: the faulting CTA ended before the dump
};

// ", CTA (2,0,1) of (7,1,4), blocks of (64,1,1)", for the end of a sentence; empty where that is not known.
std::string describe(const FaultSite& site);

// Problem: not a core dump of a GPU, or one that shows no fault.
[[nodiscard]] std::variant<FaultSite, Problem> read_core_dump(std::string_view bytes);

}  // namespace smt::image
