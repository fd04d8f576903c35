// Conformance cases: small pieces of PTX with what goes in and what must come out (README.md has the
// form of the files).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace smt::conformance {

// A value of any type, as bits.
struct Value {
    uint64_t low = 0;
    uint64_t high = 0;       // of 128 bits
    bool any = false;        // expected: whatever comes
    bool nan = false;        // expected: any NaN
    bool unwritten = false;  // expected: the thread does not get there
};

struct Row {  // one thread
    std::vector<Value> inputs;
    std::vector<Value> expected;
};

struct Tolerance {
    double ulps = 0;  // of the result's format
    double absolute = 0;
    double relative = 0;
};

struct Case {
    std::string name;
    std::string about;                         // where the expectation is from
    std::vector<std::string> inputs, outputs;  // types
    std::string module;                        // text at module scope
    std::string body;
    std::vector<Row> rows;
    Tolerance tolerance;
    uint32_t shared = 0;  // bytes of dynamic shared memory
};

int bits_of(const std::string& type);
bool is_float(const std::string& type);

// All *.cases of a folder, in order of their names. False: error says which line of which file.
bool read_cases(const std::string& folder, std::vector<Case>* cases, std::string* error);

// The case as a PTX module with a kernel `test`: each thread reads its inputs, executes the body and
// writes its outputs. Values lie 16 bytes apart: [value][thread].
std::string module_text(const Case& one);

// What is in memory where a thread has written nothing.
inline constexpr uint64_t kUnwritten = 0xcdcd'cdcd'cdcd'cdcdull;
bool matches(const Case& one, size_t output, const Value& expected, const Value& got);

}  // namespace smt::conformance
