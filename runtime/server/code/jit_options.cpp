// See jit_options.h.
#include "runtime/server/code/jit_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace smt::runtime::server {

namespace {

constexpr uint32_t kMaxLogBytes = 64u << 10;

// Options with an address as value, and options that the server sets itself.
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

bool JitOptions::has(CUjit_option option) const {
    return std::count(names_.begin(), names_.end(), option) != 0;
}

// The last occurrence of an option counts. The driver reads 32 bits of the word.
uint64_t JitOptions::number(CUjit_option option, uint64_t otherwise) const {
    uint64_t value = otherwise;
    for (size_t i = 0; i < names_.size(); ++i)
        if (names_[i] == option) value = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(values_[i]));
    return value;
}

std::string JitOptions::target() const {
    if (!has(CU_JIT_TARGET)) return "";
    const uint64_t target = number(CU_JIT_TARGET);
    const char* variant = target & CU_COMPUTE_ACCELERATED_TARGET_BASE ? "a"
                          : target & CU_COMPUTE_FAMILY_TARGET_BASE    ? "f"
                                                                      : "";
    return fmt::format("sm_{}{}", target & (CU_COMPUTE_ACCELERATED_TARGET_BASE - 1), variant);
}

std::vector<std::string> JitOptions::compiler_options() const {
    std::vector<std::string> options;
    if (uint64_t most = number(CU_JIT_MAX_REGISTERS))
        options.push_back(fmt::format("--maxrregcount={}", most));
    if (has(CU_JIT_OPTIMIZATION_LEVEL))
        options.push_back(fmt::format("--opt-level={}", number(CU_JIT_OPTIMIZATION_LEVEL)));
    if (number(CU_JIT_GENERATE_DEBUG_INFO)) options.push_back("--device-debug");
    if (number(CU_JIT_GENERATE_LINE_INFO)) options.push_back("--generate-line-info");
    if (number(CU_JIT_LOG_VERBOSE)) options.push_back("--verbose");
    if (number(CU_JIT_CACHE_MODE) == CU_JIT_CACHE_OPTION_CG) options.push_back("--def-load-cache=cg");
    if (number(CU_JIT_CACHE_MODE) == CU_JIT_CACHE_OPTION_CA) options.push_back("--def-load-cache=ca");
    if (number(CU_JIT_POSITION_INDEPENDENT_CODE)) options.push_back("--position-independent-code=true");
    if (uint64_t least = number(CU_JIT_MIN_CTA_PER_SM))
        options.push_back(fmt::format("--minnctapersm={}", least));
    if (uint64_t most = number(CU_JIT_MAX_THREADS_PER_BLOCK))
        options.push_back(fmt::format("--maxntid={}", most));
    if (number(CU_JIT_OVERRIDE_DIRECTIVE_VALUES)) options.push_back("--override-directive-values");
    return options;
}

std::vector<std::string> JitOptions::linker_options() const {
    std::vector<std::string> options;
    if (uint64_t most = number(CU_JIT_MAX_REGISTERS))
        options.push_back(fmt::format("-maxrregcount={}", most));
    // The linker accepts these two levels only.
    if (has(CU_JIT_OPTIMIZATION_LEVEL)) options.push_back(number(CU_JIT_OPTIMIZATION_LEVEL) ? "-O3" : "-O0");
    if (number(CU_JIT_GENERATE_DEBUG_INFO)) options.push_back("-g");
    if (number(CU_JIT_GENERATE_LINE_INFO)) options.push_back("-lineinfo");
    if (number(CU_JIT_LOG_VERBOSE)) options.push_back("-verbose");
    if (!number(CU_JIT_LTO)) return options;
    options.push_back("-lto");
    if (has(CU_JIT_FTZ)) options.push_back(fmt::format("-ftz={}", number(CU_JIT_FTZ)));
    if (has(CU_JIT_PREC_DIV)) options.push_back(fmt::format("-prec-div={}", number(CU_JIT_PREC_DIV)));
    if (has(CU_JIT_PREC_SQRT)) options.push_back(fmt::format("-prec-sqrt={}", number(CU_JIT_PREC_SQRT)));
    if (has(CU_JIT_FMA)) options.push_back(fmt::format("-fma={}", number(CU_JIT_FMA)));
    if (number(CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES)) options.push_back("-optimize-unused-variables");
    return options;
}

void JitOptions::append(std::vector<char>& log, const std::string& text) {
    const uint32_t before = written(log);
    if (log.size() <= before + 1) return;
    const size_t bytes = std::min(text.size(), log.size() - before - 1);
    std::memcpy(log.data() + before, text.data(), bytes);
}

void JitOptions::keep(const std::string& log, const std::string& error_log, float milliseconds) {
    kept_ = true;
    kept_milliseconds_ += milliseconds;
    append(log_, log);
    append(error_log_, error_log);
}

void JitOptions::start_again() {
    kept_ = false;
    kept_milliseconds_ = 0;
    std::fill(log_.begin(), log_.end(), '\0');
    std::fill(error_log_.begin(), error_log_.end(), '\0');
}

float JitOptions::wall_time_ms() const {
    if (kept_) return kept_milliseconds_;
    float milliseconds = 0;
    if (!values_.empty()) std::memcpy(&milliseconds, &values_.back(), sizeof(milliseconds));
    return milliseconds;
}

}  // namespace smt::runtime::server
