// An environment variable for the length of a test.
#pragma once

#include <cstdlib>
#include <string>

namespace smt::tests {

class SetVariable {
public:
    // Null: not set.
    SetVariable(const char* name, const char* value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = before, had_ = true;
        value ? ::setenv(name, value, 1) : ::unsetenv(name);
    }
    SetVariable(const SetVariable&) = delete;
    ~SetVariable() { had_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }

private:
    const char* name_;
    std::string before_;
    bool had_ = false;
};

}  // namespace smt::tests
