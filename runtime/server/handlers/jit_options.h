// The JIT options of a record, made fit for the driver: only those whose value is a number are
// accepted from a client, logs go into buffers of ours.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
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

    unsigned int count() const { return kept_ ? 0 : static_cast<unsigned int>(names_.size()); }
    CUjit_option* names() { return names_.data(); }
    void** values() { return values_.data(); }

    // The same for the compile worker: options of nvPTXCompiler, of nvJitLink, and "sm_90", where they name a target. Those
    // that choose among an image's entries, and THREADS_PER_BLOCK, whose answer is the driver's, say nothing to either.
    std::vector<std::string> compiler_options() const;
    std::vector<std::string> linker_options() const;
    std::string target() const;

    // What the worker said: behind what it said before, in place of what the driver writes. The options are done with:
    // the driver gets none of them with what was made.
    void keep(const std::string& log, const std::string& error_log, float milliseconds);
    void start_again();   // with another image: nothing was said yet

    // After the driver's call, or keep(). The sizes are what was written, without the final NUL.
    const char* log() const { return log_.data(); }
    uint32_t log_bytes() const { return written(log_); }
    const char* error_log() const { return error_log_.data(); }
    uint32_t error_log_bytes() const { return written(error_log_); }
    float wall_time_ms() const;

private:
    void add(CUjit_option name, uint64_t value);
    static uint32_t written(const std::vector<char>& log);
    static void append(std::vector<char>& log, const std::string& text);
    uint64_t number(CUjit_option option, uint64_t otherwise = 0) const;
    bool has(CUjit_option option) const;

    std::vector<CUjit_option> names_;
    std::vector<void*> values_;
    std::vector<char> log_;
    std::vector<char> error_log_;
    bool kept_ = false;
    float kept_milliseconds_ = 0;
};

}  // namespace smt::runtime::server::handlers
