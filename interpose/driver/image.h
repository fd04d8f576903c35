// What an application hands over as "an image": how many bytes it has, and how they get to the
// server. The driver's interface gives a bare pointer, so the length has to be read out of the
// image itself.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/driver/objects.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose {

// The bytes behind a module or library image: a fatbin's wrapper struct, a fatbin, a cubin, or text
// that ends with a NUL (which counts). {nullptr, 0}: no image.
struct ImageBytes {
    const void* data;
    uint64_t bytes;
};
ImageBytes image_bytes(const void* image);

// Brings `data` into the lane's upload buffer in the server, for the next record that takes an image.
CUresult upload(const void* data, uint64_t bytes);

// A whole file, read into memory that the caller free()s. It ends with a NUL beyond `bytes`.
CUresult read_file(const char* path, char*& data, uint64_t& bytes);

// JIT options split into what travels and what stays: scalars become JitOptions, log buffers are
// filled from the reply.
class JitOptions {
public:
    static constexpr uint32_t kMaxOptions = 64;

    // NOT_SUPPORTED for options that name addresses or symbols in the client.
    CUresult read(unsigned int count, CUjit_option* options, void** values);
    // `info` then `error` as the server sent them; also the sizes and the time into the application's values.
    void answer(const char* info, uint32_t info_bytes, const char* error, uint32_t error_bytes,
                float wall_time_ms);

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
    void** info_size_ = nullptr;  // the application's values to answer into
    void** error_size_ = nullptr;
    void** wall_time_ = nullptr;
};

// Sends the image that was uploaded last on this lane and makes the object for it.
CUresult load_image(protocol::ImageOwner owner, const void* data, uint64_t bytes, JitOptions& jit,
                    const protocol::JitOption* library_options, uint32_t library_option_count, Image*& image);
// The server's and the client's part of an image go.
CUresult unload_image(Image* image);
CUresult image_global(Image& image, protocol::Op op, const char* name, CUdeviceptr* address, size_t* bytes);

}  // namespace smt::interpose
