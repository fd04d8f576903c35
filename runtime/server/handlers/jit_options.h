// The JIT options of a record, made fit for the driver: only those whose value is a number are
// accepted from a client, logs go into buffers of ours.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "runtime/protocol/record.h"

namespace smt::runtime::server::handlers {

class JitOptions {
public:
    JitOptions() = default;
    JitOptions(const JitOptions&) = delete;  // the driver holds addresses of its parts
    JitOptions& operator=(const JitOptions&) = delete;

    // False: an option whose value is an address.
    bool read(const protocol::JitOption* options, uint32_t count, uint32_t log_bytes,
              uint32_t error_log_bytes);

    unsigned int count() const { return static_cast<unsigned int>(names_.size()); }
    CUjit_option* names() { return names_.data(); }
    void** values() { return values_.data(); }

    // After the driver's call. The sizes are what it wrote, without the final NUL.
    const char* log() const { return log_.data(); }
    uint32_t log_bytes() const { return written(log_); }
    const char* error_log() const { return error_log_.data(); }
    uint32_t error_log_bytes() const { return written(error_log_); }
    float wall_time_ms() const;

private:
    void add(CUjit_option name, uint64_t value);
    static uint32_t written(const std::vector<char>& log);

    std::vector<CUjit_option> names_;
    std::vector<void*> values_;
    std::vector<char> log_;
    std::vector<char> error_log_;
};

}  // namespace smt::runtime::server::handlers
