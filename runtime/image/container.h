// Where images stand in a file: a fatbin, cubin or PTX text is one itself; programs, shared libraries and
// objects have fatbins in sections; a static library has objects.
//
//   .nv_fatbin         fatbins that the program registers and the driver loads, one behind the other
//   __nv_relfatbin     relocatable device code (nvcc -rdc=true). In an object it waits for nvcc's linker.
//                      In a program it was linked: the result stands in .nv_fatbin, as machine code alone;
//                      what it was made from, PTX included, stays here and is never loaded.
//   .nvFatBinSegment   a record for each fatbin; one of version 2 leads to what nvcc linked
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/image/image.h"

namespace smt::image {

enum class FileKind : uint8_t { kFatbin, kCubin, kPtx, kProgram, kLibrary, kObject, kArchive };

const char* name(FileKind kind);  // in words

enum class Place : uint8_t {
    kItself,       // the file is the image
    kRegistered,   // .nv_fatbin
    kRelocatable,  // __nv_relfatbin
};

struct Found {
    Place place = Place::kItself;
    bool linked = false;      // by nvcc, from relocatable code
    std::string_view member;  // of a static library
    uint64_t offset = 0;      // in the file
    std::string_view bytes;
};

struct Container {
    FileKind kind = FileKind::kFatbin;
    std::vector<Found> images;  // at least one, in the order of the file; they are views of it
};

// Problem: no such file, or one whose parts do not fit, or one without device code.
[[nodiscard]] std::variant<Container, Problem> find_images(std::string_view file);

// Whether something that the image says of itself lies beyond its end, or its parts do not follow each
// other: for callers that hand it to code that trusts it. Texts, and what is neither fatbin nor cubin, pass.
[[nodiscard]] std::optional<Problem> check(std::string_view image);

}  // namespace smt::image
