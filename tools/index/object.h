// What nvcc left in an object file: the device's image, and what the host's side calls by name.
#pragma once

#include <string>
#include <vector>

namespace smt::tools::index {

struct Object {
    std::string image;                 // the fatbin, as the program will load it
    std::vector<std::string> strings;  // of the host's constants, sorted
    std::string problem;               // why there is no image; empty: there is
};

Object read_object(const std::string& path);

}  // namespace smt::tools::index
