// Images that an application passes: their length and their upload to the server. The driver's interface
// passes a bare pointer, so the length is read from the image itself.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/driver/objects.h"
#include "interpose/process/image_bytes.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose {

// Writes `data` to the lane's upload buffer in the server, for the next record that takes an image.
CUresult upload(const void* data, uint64_t bytes);

// Reads a whole file into memory that the caller free()s. A NUL follows the `bytes` bytes.
CUresult read_file(const char* path, char*& data, uint64_t& bytes);

// JIT options, split by destination: scalars become JitOptions in the record, log buffers are filled from the
// reply.
class JitOptions {
public:
    static constexpr uint32_t kMaxOptions = 64;

    // NOT_SUPPORTED for options that name addresses or symbols in the client.
    CUresult read(unsigned int count, CUjit_option* options, void** values);
    // Stores the server's `info` and `error` logs, their sizes and the time in the application's option
    // values.
    void answer(const char* info, uint32_t info_bytes, const char* error, uint32_t error_bytes,
                float wall_time_ms);

    // For the same image in another session.
    JitOptions without_logs() const {
        JitOptions options;
        for (uint32_t i = 0; i < count_; ++i) options.scalars_[i] = scalars_[i];
        options.count_ = count_;
        return options;
    }

    const protocol::JitOption* scalars() const { return scalars_; }
    uint32_t count() const { return count_; }
    uint32_t log_bytes() const { return info_log_ ? info_capacity_ : 0; }
    uint32_t error_log_bytes() const { return error_log_ ? error_capacity_ : 0; }

private:
    protocol::JitOption scalars_[kMaxOptions];
    uint32_t count_ = 0;
    char* info_log_ = nullptr;
    char* error_log_ = nullptr;
    uint32_t info_capacity_ = 0;
    uint32_t error_capacity_ = 0;
    void** info_size_ = nullptr;  // the application's option values that receive results
    void** error_size_ = nullptr;
    void** wall_time_ = nullptr;
};

// Sends the record for the image that was uploaded last on this lane and creates its object.
CUresult load_image(protocol::ImageOwner owner, const void* data, uint64_t bytes, JitOptions& jit,
                    const protocol::JitOption* library_options, uint32_t library_option_count, Image*& image);
// Unloads the server's and the client's part of an image. `released`: null, or where to say whether the
// client's part is gone: another thread may have taken its place since.
CUresult unload_image(Image* image, bool* released = nullptr);
CUresult image_global(Image& image, protocol::Op op, const char* name, CUdeviceptr* address, size_t* bytes);

}  // namespace smt::interpose
