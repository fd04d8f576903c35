#include "runtime/image/variables.h"

#include <cctype>
#include <string>
#include <variant>
#include <vector>

#include "runtime/image/elf_file.h"

namespace smt::image {

namespace {

constexpr uint64_t kMost = ~uint64_t{0};

uint64_t sum(uint64_t a, uint64_t b) { return a > kMost - b ? kMost : a + b; }
uint64_t product(uint64_t a, uint64_t b) { return b != 0 && a > kMost / b ? kMost : a * b; }

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' || c == '%';
}

uint64_t number(std::string_view digits) {
    const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
    uint64_t value = 0;
    for (const char c : digits.substr(hex ? 2 : 0)) {
        if (!std::isxdigit(static_cast<unsigned char>(c)) ||
            (!hex && !std::isdigit(static_cast<unsigned char>(c))))
            break;  // a suffix: U
        const unsigned digit = std::isdigit(static_cast<unsigned char>(c))
                                   ? static_cast<unsigned>(c - '0')
                                   : (static_cast<unsigned>(c) | 0x20u) - 'a' + 10u;
        value = sum(product(value, hex ? 16 : 10), digit);
    }
    return value;
}

// ".b8": 1, ".f64": 8; 0: no type.
uint64_t type_bytes(std::string_view word) {
    if (word == ".pred") return 1;
    if (word.size() < 3 || word[0] != '.' || std::string_view("busf").find(word[1]) == std::string_view::npos)
        return 0;
    const uint64_t bits = number(word.substr(2));
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

// One declaration outside of bodies, without its initial value.
uint64_t declared_bytes(std::string_view text) {
    bool global = false;
    uint64_t bytes = 0, elements = 1;
    for (size_t at = 0; at < text.size();) {
        if (text[at] == '[') {
            size_t digits = text.find_first_not_of(" \t\r\n", at + 1);
            if (digits != text.npos && text[digits] != ']')
                elements = product(elements, number(text.substr(digits)));
            at = text.find(']', at);
            if (at == text.npos) break;
            continue;
        }
        if (!is_word(text[at])) {
            ++at;
            continue;
        }
        size_t end = at;
        while (end < text.size() && is_word(text[end])) ++end;
        const std::string_view word = text.substr(at, end - at);
        if (word == ".extern" || word == ".managed") return 0;  // elsewhere; or in host memory
        if (word == ".global") global = true;
        if (word == ".v2") elements = product(elements, 2);
        if (word == ".v4") elements = product(elements, 4);
        if (bytes == 0) bytes = type_bytes(word);
        at = end;
    }
    return global ? product(bytes, elements) : 0;
}

// Behind a comment that begins there, else the same place.
size_t behind_comment(std::string_view text, size_t at) {
    if (text[at] != '/' || at + 1 == text.size()) return at;
    size_t end = at;
    if (text[at + 1] == '/') end = text.find('\n', at);
    if (text[at + 1] == '*') end = text.find("*/", at + 2);
    return end == text.npos ? text.size() : end == at ? at : end + (text[at + 1] == '*' ? 2 : 1);
}

}  // namespace

uint64_t variable_bytes_of_ptx(std::string_view text) {
    uint64_t bytes = 0;
    unsigned depth = 0;
    bool initial_value = false;
    std::string declaration;
    for (size_t at = 0; at < text.size(); ++at) {
        if (const size_t behind = behind_comment(text, at); behind != at) {
            at = behind - 1;
            continue;
        }
        const char c = text[at];
        if (c == '"') {  // of a directive: braces in it mean nothing
            at = text.find('"', at + 1);
            if (at == text.npos) break;
        } else if (c == '{') {
            ++depth;
        } else if (c == '}') {
            if (depth > 0) --depth;
            if (depth == 0 && !initial_value) declaration.clear();  // that was a body
        } else if (depth == 0 && c == '=') {
            initial_value = true;
        } else if (depth == 0 && c == ';') {
            bytes = sum(bytes, declared_bytes(declaration));
            declaration.clear();
            initial_value = false;
        } else if (depth == 0 && !initial_value) {
            declaration += c;
        }
    }
    return bytes;
}

uint64_t variable_bytes_of_cubin(std::string_view cubin) {
    const auto file = ElfFile::read(cubin);
    uint64_t bytes = 0;
    if (const auto* elf = std::get_if<ElfFile>(&file)) {
        for (const Elf64_Shdr& section : elf->sections())
            if (elf->name_begins(section, ".nv.global")) bytes = sum(bytes, section.sh_size);
    }
    return bytes;
}

uint64_t variable_bytes(std::string_view image, const Device& device) {
    const auto read_image = read(image);
    const auto* entries = std::get_if<std::vector<Entry>>(&read_image);
    const Entry* chosen = entries ? choose(*entries, device) : nullptr;
    if (!chosen) return 0;
    const auto count = chosen->kind == Kind::kCubin ? variable_bytes_of_cubin : variable_bytes_of_ptx;
    if (chosen->compression == Compression::kNone) return count(chosen->stored);
    const auto expanded = expand(*chosen);
    const auto* content = std::get_if<std::string>(&expanded);
    return content ? count(*content) : 0;
}

}  // namespace smt::image
