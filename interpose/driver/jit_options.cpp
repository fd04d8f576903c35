// JIT options of modules and the linker. An option's value is a pointer-sized word: a number, the address of
// a buffer, or the destination of a result, depending on the option.
#include <cstring>

#include "interpose/driver/image.h"

namespace smt::interpose {

namespace {

uint32_t number(void* value) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(value)); }

// The limit for logs: a longer one does not fit a reply.
constexpr uint32_t kMaxLogBytes = 64u << 10;
uint32_t capacity(void* value) { return number(value) < kMaxLogBytes ? number(value) : kMaxLogBytes; }

void fill_log(char* log, uint32_t log_capacity, void** size, const char* text, uint32_t bytes) {
    if (!log || log_capacity == 0) return;
    uint32_t copied = bytes < log_capacity ? bytes : log_capacity - 1;
    if (copied) std::memcpy(log, text, copied);
    log[copied] = 0;
    if (size) *size = reinterpret_cast<void*>(uintptr_t(copied));
}

}  // namespace

CUresult JitOptions::read(unsigned int count, CUjit_option* options, void** values) {
    if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
    if (count > kMaxOptions) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; ++i) {
        switch (options[i]) {
            case CU_JIT_WALL_TIME:
                wall_time_ = &values[i];
                break;
            case CU_JIT_INFO_LOG_BUFFER:
                info_log_ = static_cast<char*>(values[i]);
                break;
            case CU_JIT_ERROR_LOG_BUFFER:
                error_log_ = static_cast<char*>(values[i]);
                break;
            case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
                info_size_ = &values[i];
                info_capacity_ = capacity(values[i]);
                break;
            case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
                error_size_ = &values[i];
                error_capacity_ = capacity(values[i]);
                break;
            case CU_JIT_GLOBAL_SYMBOL_NAMES:
            case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
            case CU_JIT_GLOBAL_SYMBOL_COUNT:
            case CU_JIT_REFERENCED_KERNEL_NAMES:
            case CU_JIT_REFERENCED_KERNEL_COUNT:
            case CU_JIT_REFERENCED_VARIABLE_NAMES:
            case CU_JIT_REFERENCED_VARIABLE_COUNT:
                if (values[i]) return CUDA_ERROR_NOT_SUPPORTED;
                break;
            default:
                scalars_[count_++] = {static_cast<uint32_t>(options[i]), 0,
                                      reinterpret_cast<uintptr_t>(values[i])};
        }
    }
    return CUDA_SUCCESS;
}

void JitOptions::answer(const char* info, uint32_t info_bytes, const char* error, uint32_t error_bytes,
                        float wall_time_ms) {
    fill_log(info_log_, info_capacity_, info_size_, info, info_bytes);
    fill_log(error_log_, error_capacity_, error_size_, error, error_bytes);
    if (wall_time_) std::memcpy(wall_time_, &wall_time_ms, sizeof(wall_time_ms));
}

}  // namespace smt::interpose
