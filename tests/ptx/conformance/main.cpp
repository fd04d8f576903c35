// ptx_conformance [--interpreter | --driver | --write FOLDER] [--cases FOLDER] [NAME ...]
//
// Runs the cases and prints a line of JSON for each: name, ok, got and expected (bits, by output and
// thread) or error. Exit status 1: at least one is not ok. --driver, the default, needs no other file
// of this tree than the cases, and runs the same on a GPU and on the simulated device; --write puts
// each case's PTX into a file.
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tests/ptx/conformance/device.h"

#ifndef SMT_CASES_FOLDER
#define SMT_CASES_FOLDER "cases"
#endif

using namespace smt::conformance;

namespace {

std::string hex(const Case& one, size_t output, const Value& value) {
    char text[64];
    if (value.any) return "\"?\"";
    if (value.nan) return "\"nan\"";
    if (value.unwritten) return "\"unwritten\"";
    if (bits_of(one.outputs[output]) == 128)
        std::snprintf(text, sizeof(text), "\"%016llx%016llx\"", static_cast<unsigned long long>(value.high),
                      static_cast<unsigned long long>(value.low));
    else
        std::snprintf(text, sizeof(text), "\"%llx\"", static_cast<unsigned long long>(value.low));
    return text;
}

std::string list(const Case& one, const std::vector<Value>& values) {
    std::string text = "[";
    for (size_t i = 0; i < values.size(); ++i)
        text += (i == 0 ? "" : ",") + hex(one, i / one.rows.size(), values[i]);
    return text + "]";
}

std::string escaped(const std::string& text) {
    std::string out;
    for (char each : text) {
        if (each == '"' || each == '\\') out += '\\';
        if (each == '\n')
            out += "\\n";
        else if (static_cast<unsigned char>(each) >= 32)
            out += each;
    }
    return out;
}

bool run(Device& device, const Case& one) {
    std::vector<Value> got;
    std::string error;
    if (!device.run(one, &got, &error)) {
        std::printf("{\"name\":\"%s\",\"ok\":false,\"error\":\"%s\"}\n", one.name.c_str(),
                    escaped(error).c_str());
        return false;
    }
    std::vector<Value> expected;
    bool ok = true;
    std::string wrong;
    for (size_t output = 0; output < one.outputs.size(); ++output)
        for (size_t thread = 0; thread < one.rows.size(); ++thread) {
            expected.push_back(one.rows[thread].expected[output]);
            if (matches(one, output, expected.back(), got[expected.size() - 1])) continue;
            if (ok) wrong = ",\"output\":" + std::to_string(output) + ",\"thread\":" + std::to_string(thread);
            ok = false;
        }
    std::printf("{\"name\":\"%s\",\"ok\":%s%s,\"got\":%s,\"expected\":%s}\n", one.name.c_str(),
                ok ? "true" : "false", wrong.c_str(), list(one, got).c_str(), list(one, expected).c_str());
    std::fflush(stdout);
    return ok;
}

}  // namespace

int main(int count, char** words) {
    std::string cases_folder = SMT_CASES_FOLDER;
    std::string write_folder;
    bool interpreter = false;
    std::vector<std::string> names;
    for (int i = 1; i < count; ++i) {
        if (std::strcmp(words[i], "--interpreter") == 0)
            interpreter = true;
        else if (std::strcmp(words[i], "--driver") == 0)
            interpreter = false;
        else if (std::strcmp(words[i], "--cases") == 0 && i + 1 < count)
            cases_folder = words[++i];
        else if (std::strcmp(words[i], "--write") == 0 && i + 1 < count)
            write_folder = words[++i];
        else
            names.emplace_back(words[i]);
    }
    std::vector<Case> cases;
    std::string error;
    if (!read_cases(cases_folder, &cases, &error)) {
        std::fprintf(stderr, "%s\n", error.c_str());
        return 2;
    }
    if (!write_folder.empty()) {
        for (const Case& one : cases)
            std::ofstream(write_folder + "/" + one.name + ".ptx") << module_text(one);
        return 0;
    }
    auto device = interpreter ? open_interpreter() : open_driver(&error);
    if (device == nullptr) {
        std::fprintf(stderr, "no device: %s\n", error.c_str());
        return 2;
    }
    size_t right = 0;
    size_t run_count = 0;
    for (const Case& one : cases) {
        bool wanted = names.empty();
        for (const std::string& name : names) wanted |= one.name.starts_with(name);
        if (!wanted) continue;
        ++run_count;
        right += run(*device, one) ? 1 : 0;
    }
    std::fprintf(stderr, "%zu of %zu cases right\n", right, run_count);
    return right == run_count ? 0 : 1;
}
