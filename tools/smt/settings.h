// Values that a person gives a tenant on the command line. All throw Misuse for what makes no sense.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/settings/table.h"

namespace smt::tools {

// "512M" -> bytes. K, M, G and T are powers of 1024; without one it is bytes. Zero makes no sense.
uint64_t parse_bytes(const std::string& text);
uint32_t parse_seed(const std::string& text);  // of --stress
int parse_priority(const std::string& text);
std::string parse_isolation(const std::string& text);  // in words that SMT_ISOLATION takes
// --weight; in words that SMT_WEIGHT takes.
std::string parse_weight(const std::string& text);
std::string parse_time(const std::string& text);          // --p99; in words that SMT_P99 takes
std::string parse_slowdown(const std::string& text);      // --slowdown; in words that SMT_SLOWDOWN takes
uint32_t parse_multiprocessors(const std::string& text);  // of --sms
// Whole seconds from `least` to the most that the setting takes.
uint32_t parse_seconds(const char* option, settings::Id setting, uint64_t least, const std::string& text);

}  // namespace smt::tools
