#include <fmt/format.h>

#include "rewriter/ptx/printing.h"

namespace smt::ptx {

namespace {

using Kind = Operand::Kind;

std::string_view component_name(int8_t component) {
    static constexpr std::string_view kNames[] = {".x", ".y", ".z", ".w"};
    return component < 0 || component > 3 ? "" : kNames[component];
}

void print_special(std::string& out, const Operand& operand) {
    switch (operand.special) {
        case Special::kEnvreg:
            out += fmt::format("%envreg{}", operand.bits);
            break;
        case Special::kPm:
            out += fmt::format("%pm{}", operand.bits);
            break;
        case Special::kPm64:
            out += fmt::format("%pm{}_64", operand.bits);
            break;
        default:
            out += name(operand.special);
    }
    out += component_name(operand.component);
}

void print_address(std::string& out, const Operand& operand) {
    out += '[';
    for (size_t i = 0; i < operand.elements.size(); ++i) {
        if (i) out += ", ";
        print_operand(out, operand.elements[i]);
        if (i == 0) print_offset(out, operand.offset);
    }
    out += ']';
    if (!operand.selector.empty()) out += "." + operand.selector;
}

void print_elements(std::string& out, char open, const Operand& operand, char close) {
    out += open;
    for (size_t i = 0; i < operand.elements.size(); ++i) {
        if (i) out += ", ";
        print_operand(out, operand.elements[i]);
    }
    out += close;
}

}  // namespace

void print_offset(std::string& out, int64_t offset) {
    if (offset) out += fmt::format("+{}", offset);
}

// Beyond the largest signed number only the unsigned form is read back as the same.
void print_integer(std::string& out, uint64_t bits) { out += fmt::format("{}", static_cast<int64_t>(bits)); }
void print_float32(std::string& out, uint64_t bits) { out += fmt::format("0f{:08X}", bits & 0xffffffff); }
void print_float64(std::string& out, uint64_t bits) { out += fmt::format("0d{:016X}", bits); }

void print_operand(std::string& out, const Operand& operand) {
    if (operand.negated) out += '!';
    if (operand.minus) out += '-';
    switch (operand.kind) {
        case Kind::kRegister:
            out += operand.name;
            out += component_name(operand.component);
            if (!operand.selector.empty()) out += "." + operand.selector;
            break;
        case Kind::kSpecial:
            print_special(out, operand);
            break;
        case Kind::kInteger:
            print_integer(out, operand.bits);
            break;
        case Kind::kFloat32:
            print_float32(out, operand.bits);
            break;
        case Kind::kFloat64:
            print_float64(out, operand.bits);
            break;
        case Kind::kSymbol:
            out += operand.name;
            print_offset(out, operand.offset);
            break;
        case Kind::kLabel:
            out += operand.name;
            break;
        case Kind::kAddress:
            print_address(out, operand);
            break;
        case Kind::kVector:
            print_elements(out, '{', operand, '}');
            break;
        case Kind::kSink:
            out += '_';
            break;
        case Kind::kPair:
            print_operand(out, operand.elements[0]);
            out += '|';
            print_operand(out, operand.elements[1]);
            break;
        case Kind::kList:
            print_elements(out, '(', operand, ')');
            break;
    }
}

}  // namespace smt::ptx
