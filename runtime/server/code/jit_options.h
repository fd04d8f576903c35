// The JIT options of a record, converted for the driver or the compile worker. Only options with numeric
// values are accepted from a client. Logs go to the server's own buffers. Not thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/protocol/record.h"

namespace smt::runtime::server {

class JitOptions {
public:
    JitOptions() = default;
    JitOptions(const JitOptions&) = delete;  // the driver holds addresses of its parts
    JitOptions& operator=(const JitOptions&) = delete;

    // False: an option has an address as its value.
    bool read(const protocol::JitOption* options, uint32_t count, uint32_t log_bytes,
              uint32_t error_log_bytes);

    unsigned int count() const { return kept_ ? 0 : static_cast<unsigned int>(names_.size()); }
    CUjit_option* names() { return names_.data(); }
    void** values() { return values_.data(); }

    // The same for the compile worker: options of nvPTXCompiler and nvJitLink, and the target if the options
    // name one ("sm_90"). Options that choose among an image's entries, and THREADS_PER_BLOCK, which the
    // driver answers, are left out.
    std::vector<std::string> compiler_options() const;
    std::vector<std::string> linker_options() const;
    std::string target() const;

    // Appends the worker's logs in place of the driver's. From then on count() is 0: the driver gets the
    // cubin without options.
    void keep(const std::string& log, const std::string& error_log, float milliseconds);
    void start_again();  // for another image: clears logs and times

    // Valid after the driver's call or keep(). Sizes are the written bytes without the final NUL.
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

}  // namespace smt::runtime::server
