#include "tests/ptx/conformance/case_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace smt::conformance {
namespace {

std::vector<std::string> words_of(const std::string& line) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

bool parse_value(const std::string& word, const std::string& type, Value* value) {
    if (word == "?") return value->any = true;
    if (word == "unwritten") return value->unwritten = true;
    if (word == "nan") return value->nan = true;
    if (word.starts_with("0x") && word.find('p') == std::string::npos) {
        const std::string digits = word.substr(2);
        const size_t split = digits.size() > 16 ? digits.size() - 16 : 0;
        value->low = std::strtoull(digits.substr(split).c_str(), nullptr, 16);
        if (split != 0) value->high = std::strtoull(digits.substr(0, split).c_str(), nullptr, 16);
        return true;
    }
    char* end = nullptr;
    if (type == "f32")
        value->low = std::bit_cast<uint32_t>(std::strtof(word.c_str(), &end));
    else if (type == "f64")
        value->low = std::bit_cast<uint64_t>(std::strtod(word.c_str(), &end));
    else
        value->low = static_cast<uint64_t>(std::strtoll(word.c_str(), &end, 10));
    if (bits_of(type) < 64) value->low &= (1ull << bits_of(type)) - 1;
    return end != nullptr && *end == 0;
}

class Reader {
public:
    Reader(std::istream& stream, std::vector<Case>* cases) : stream_(stream), cases_(cases) {}

    std::string error;
    int line = 0;

    bool read() {
        for (std::string text; next(&text);) {
            const auto words = words_of(text);
            if (words.empty() || words[0][0] == '#') continue;
            if (!statement(words, text)) return false;
        }
        return true;
    }

private:
    bool next(std::string* text) {
        ++line;
        return static_cast<bool>(std::getline(stream_, *text));
    }
    bool fail(std::string why) {
        error = std::move(why);
        return false;
    }
    bool block(std::string* to) {
        for (std::string text; next(&text);) {
            if (words_of(text) == std::vector<std::string>{"end"}) return true;
            *to += text + "\n";
        }
        return fail("no end");
    }
    bool statement(const std::vector<std::string>& words, const std::string& text) {
        if (words[0] == "case") {
            cases_->emplace_back().name = words.at(1);
            return true;
        }
        if (cases_->empty()) return fail("no case");
        Case& one = cases_->back();
        const std::vector<std::string> rest(words.begin() + 1, words.end());
        if (words[0] == "about")
            one.about = text.substr(6);
        else if (words[0] == "in")
            one.inputs = rest;
        else if (words[0] == "out")
            one.outputs = rest;
        else if (words[0] == "shared")
            one.shared = static_cast<uint32_t>(std::stoul(rest.at(0)));
        else if (words[0] == "tolerance")
            return tolerance(rest, &one.tolerance);
        else if (words[0] == "module")
            return block(&one.module);
        else if (words[0] == "body")
            return block(&one.body);
        else if (words[0] == "row")
            return row(rest, &one);
        else
            return fail("what is " + words[0] + "?");
        return true;
    }
    bool tolerance(const std::vector<std::string>& words, Tolerance* to) {
        const double amount = std::strtod(words.at(0).c_str(), nullptr);
        if (words.at(1) == "ulp")
            to->ulps = amount;
        else if (words.at(1) == "absolute")
            to->absolute = amount;
        else if (words.at(1) == "relative")
            to->relative = amount;
        else
            return fail("ulp, absolute or relative");
        return true;
    }
    bool row(const std::vector<std::string>& words, Case* one) {
        if (words.size() != one->inputs.size() + 1 + one->outputs.size() || words[one->inputs.size()] != "=")
            return fail("a row has the inputs, =, and the outputs");
        Row made;
        for (size_t i = 0; i < words.size(); ++i) {
            if (i == one->inputs.size()) continue;
            const bool output = i > one->inputs.size();
            Value value;
            if (!parse_value(words[i], output ? one->outputs[i - one->inputs.size() - 1] : one->inputs[i],
                             &value))
                return fail("no value: " + words[i]);
            (output ? made.expected : made.inputs).push_back(value);
        }
        one->rows.push_back(std::move(made));
        return true;
    }

    std::istream& stream_;
    std::vector<Case>* cases_;
};

// Of 16, 32 and 64 bits, as a double and as a number that counts representable values.
double to_double(const std::string& type, uint64_t bits) {
    if (type == "f32") return std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (type == "bf16") return std::bit_cast<float>(static_cast<uint32_t>(bits << 16));
    if (type == "f64") return std::bit_cast<double>(bits);
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double fraction = static_cast<double>(bits & 1023) / 1024;
    const double magnitude =
        exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                       : std::ldexp(exponent == 0 ? fraction : 1 + fraction, std::max(exponent, 1) - 15);
    return (bits >> 15 & 1) != 0 ? -magnitude : magnitude;
}

int64_t ordinal(int width, uint64_t bits) {
    const uint64_t sign = 1ull << (width - 1);
    return (bits & sign) != 0 ? -static_cast<int64_t>(bits & (sign - 1)) : static_cast<int64_t>(bits);
}

bool near(const std::string& type, const Tolerance& tolerance, uint64_t expected, uint64_t got) {
    const double a = to_double(type, expected);
    const double b = to_double(type, got);
    if (!std::isfinite(a) || !std::isfinite(b)) return expected == got;
    const double off = std::fabs(a - b);
    if (tolerance.absolute != 0 && off <= tolerance.absolute) return true;
    if (tolerance.relative != 0 && off <= tolerance.relative * std::fabs(a)) return true;
    const int width = bits_of(type);
    return tolerance.ulps != 0 &&
           std::abs(static_cast<double>(ordinal(width, expected) - ordinal(width, got))) <= tolerance.ulps;
}

}  // namespace

int bits_of(const std::string& type) {
    if (type == "pred") return 1;
    if (type.ends_with("x2")) return 32;
    return std::atoi(type.c_str() + type.find_first_of("123456789"));
}

bool is_float(const std::string& type) {
    return type == "f16" || type == "bf16" || type == "f32" || type == "f64";
}

bool read_cases(const std::string& folder, std::vector<Case>* cases, std::string* error) {
    std::vector<std::filesystem::path> paths;
    std::error_code problem;
    for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
        if (entry.path().extension() == ".cases") paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
        std::ifstream stream(path);
        Reader reader(stream, cases);
        if (reader.read()) continue;
        *error = path.filename().string() + ":" + std::to_string(reader.line) + ": " + reader.error;
        return false;
    }
    if (cases->empty()) *error = "no cases in " + folder;
    return !cases->empty();
}

bool matches(const Case& one, size_t output, const Value& expected, const Value& got) {
    if (expected.any) return true;
    if (expected.unwritten) return got.low == kUnwritten;
    const std::string& type = one.outputs[output];
    if (got.low == kUnwritten && got.high == kUnwritten) return false;
    if (expected.nan) return std::isnan(to_double(type, got.low));
    const int bits = bits_of(type);
    const uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1;
    if ((got.low & mask) == expected.low && (bits < 128 || got.high == expected.high)) return true;
    return is_float(type) && near(type, one.tolerance, expected.low, got.low & mask);
}

}  // namespace smt::conformance
