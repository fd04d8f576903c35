// What makes a keeper's chunks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace smt::runtime::keeper {

// Results are CUresults. Ids are the keeper's. One thread.
class Source {
public:
    virtual ~Source() = default;  // frees all chunks
    virtual int create(uint64_t id, uint64_t bytes) = 0;
    virtual void release(uint64_t id) = 0;
    // A descriptor for the chunk, which the caller closes.
    virtual int descriptor(uint64_t id, int* file) = 0;
};

std::unique_ptr<Source> memfd_source();
// The driver at this path, and its first device. Null with `problem` set: it cannot be used.
std::unique_ptr<Source> cuda_source(const std::string& path, std::string* problem);

}  // namespace smt::runtime::keeper
