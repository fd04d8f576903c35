// See jit_options.h.
#include "runtime/server/handlers/jit_options.h"

#include <algorithm>
#include <cstring>

namespace smt::runtime::server::handlers {

namespace {

constexpr uint32_t kMaxLogBytes = 64u << 10;

// Options that carry an address, or that we set ourselves.
bool carries_address(uint32_t option) {
    switch (option) {
        case CU_JIT_WALL_TIME:
        case CU_JIT_INFO_LOG_BUFFER:
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        case CU_JIT_ERROR_LOG_BUFFER:
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        case CU_JIT_GLOBAL_SYMBOL_NAMES:
        case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
        case CU_JIT_GLOBAL_SYMBOL_COUNT:
        case CU_JIT_REFERENCED_KERNEL_NAMES:
        case CU_JIT_REFERENCED_KERNEL_COUNT:
        case CU_JIT_REFERENCED_VARIABLE_NAMES:
        case CU_JIT_REFERENCED_VARIABLE_COUNT:
            return true;
        default:
            return option >= CU_JIT_NUM_OPTIONS;
    }
}

}  // namespace

bool JitOptions::read(const protocol::JitOption* options, uint32_t count, uint32_t log_bytes,
                      uint32_t error_log_bytes) {
    for (uint32_t i = 0; i < count; ++i) {
        if (carries_address(options[i].option)) return false;
        add(static_cast<CUjit_option>(options[i].option), options[i].value);
    }
    log_.assign(std::min(log_bytes, kMaxLogBytes), 0);
    error_log_.assign(std::min(error_log_bytes, kMaxLogBytes), 0);
    if (!log_.empty()) {
        add(CU_JIT_INFO_LOG_BUFFER, reinterpret_cast<uint64_t>(log_.data()));
        add(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, log_.size());
    }
    if (!error_log_.empty()) {
        add(CU_JIT_ERROR_LOG_BUFFER, reinterpret_cast<uint64_t>(error_log_.data()));
        add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error_log_.size());
    }
    if (!names_.empty()) add(CU_JIT_WALL_TIME, 0);  // the driver writes its value
    return true;
}

void JitOptions::add(CUjit_option name, uint64_t value) {
    names_.push_back(name);
    values_.push_back(reinterpret_cast<void*>(value));
}

uint32_t JitOptions::written(const std::vector<char>& log) {
    return log.empty() ? 0 : static_cast<uint32_t>(strnlen(log.data(), log.size()));
}

float JitOptions::wall_time_ms() const {
    float milliseconds = 0;
    if (!values_.empty()) std::memcpy(&milliseconds, &values_.back(), sizeof(milliseconds));
    return milliseconds;
}

}  // namespace smt::runtime::server::handlers
