// The module, its variables and functions. Bodies are in print_body.cpp.
#include "rewriter/ptx/printer.h"

#include <fmt/format.h>

#include "rewriter/ptx/printing.h"

namespace smt::ptx {

namespace {

const char* word(Space space) {
    switch (space) {
        case Space::kRegister:
            return ".reg";
        case Space::kGlobal:
            return ".global";
        case Space::kConstant:
            return ".const";
        case Space::kLocal:
            return ".local";
        case Space::kShared:
            return ".shared";
        case Space::kParameter:
            return ".param";
        default:
            return ".tex";
    }
}

const char* word(Linkage linkage) {
    switch (linkage) {
        case Linkage::kExtern:
            return ".extern ";
        case Linkage::kVisible:
            return ".visible ";
        case Linkage::kWeak:
            return ".weak ";
        case Linkage::kCommon:
            return ".common ";
        default:
            return "";
    }
}

const char* word(Directive::Kind kind) {
    switch (kind) {
        case Directive::Kind::kMaxntid:
            return ".maxntid";
        case Directive::Kind::kReqntid:
            return ".reqntid";
        case Directive::Kind::kMinnctapersm:
            return ".minnctapersm";
        case Directive::Kind::kMaxnctapersm:
            return ".maxnctapersm";
        case Directive::Kind::kMaxnreg:
            return ".maxnreg";
        case Directive::Kind::kNoreturn:
            return ".noreturn";
        case Directive::Kind::kExplicitcluster:
            return ".explicitcluster";
        case Directive::Kind::kReqnctapercluster:
            return ".reqnctapercluster";
        case Directive::Kind::kMaxclusterrank:
            return ".maxclusterrank";
        case Directive::Kind::kBlocksareclusters:
            return ".blocksareclusters";
        case Directive::Kind::kAbiPreserve:
            return ".abi_preserve";
        case Directive::Kind::kAbiPreserveControl:
            return ".abi_preserve_control";
        default:
            return ".pragma";
    }
}

void print_symbol(std::string& out, const Initializer& value) {
    if (value.mask) out += fmt::format("0x{:X}(", value.mask);
    out += value.generic ? fmt::format("generic({})", value.name) : value.name;
    print_offset(out, value.offset);
    if (value.mask) out += ')';
}

void print_initializer(std::string& out, const Initializer& value) {
    if (!value.field.empty()) out += value.field + " = ";
    switch (value.kind) {
        case Initializer::Kind::kInteger:
            return print_integer(out, value.bits);
        case Initializer::Kind::kFloat32:
            return print_float32(out, value.bits);
        case Initializer::Kind::kFloat64:
            return print_float64(out, value.bits);
        case Initializer::Kind::kSymbol:
            return print_symbol(out, value);
        case Initializer::Kind::kWord:
            out += value.name;
            return;
        case Initializer::Kind::kList:
            break;
    }
    out += '{';
    for (size_t i = 0; i < value.elements.size(); ++i) {
        if (i) out += ", ";
        print_initializer(out, value.elements[i]);
    }
    out += '}';
}

void print_function(std::string& out, const Function& function) {
    out += fmt::format("\n{}{} ", word(function.linkage), function.kernel ? ".entry" : ".func");
    print_attributes(out, function.attributes);
    if (!function.results.empty()) {
        print_parameters(out, function.results, " ");
        out += ' ';
    }
    out += function.name;
    print_parameters(out, function.parameters, "\n\t");
    print_directives(out, function.directives);
    if (!function.body) {
        out += ";\n";
        return;
    }
    out += '\n';
    print_scope(out, *function.body, 0);
}

struct DeclarationPrinter {
    std::string& out;

    void operator()(const Variable& variable) const {
        print_variable(out, variable);
        out += ";\n";
    }
    void operator()(const Function& function) const { print_function(out, function); }
    void operator()(const Alias& alias) const {
        out += fmt::format(".alias {}, {};\n", alias.name, alias.target);
    }
    void operator()(const File& file) const {
        out += fmt::format(".file {} \"{}\"", file.index, file.name);
        if (file.timestamp) out += fmt::format(", {}", *file.timestamp);
        if (file.bytes) out += fmt::format(", {}", *file.bytes);
        out += '\n';
    }
    void operator()(const Section& section) const {
        out += fmt::format(".section {} {{{}}}\n", section.name, section.text);
    }
    void operator()(const Pragma& pragma) const {
        out += ".pragma ";
        print_texts(out, pragma.texts);
        out += ";\n";
    }
};

}  // namespace

void print_attributes(std::string& out, const std::vector<Attribute>& attributes) {
    for (const Attribute& attribute : attributes) {
        out += ".attribute(." + attribute.name;
        for (size_t i = 0; i < attribute.values.size(); ++i)
            out += fmt::format("{}{}", i ? ", " : "(", attribute.values[i]);
        out += attribute.values.empty() ? ") " : ")) ";
    }
}

void print_variable(std::string& out, const Variable& variable) {
    out += fmt::format("{}{} ", word(variable.linkage), word(variable.space));
    print_attributes(out, variable.attributes);
    if (variable.alignment) out += fmt::format(".align {} ", variable.alignment);
    if (variable.vector > 1) out += fmt::format(".v{} ", variable.vector);
    out += fmt::format(".{} ", name(variable.type));
    if (variable.pointer) out += ".ptr ";
    if (variable.pointer_space) out += fmt::format("{} ", word(*variable.pointer_space));
    if (variable.pointer_alignment) out += fmt::format(".align {} ", variable.pointer_alignment);
    out += variable.name;
    if (variable.count) out += fmt::format("<{}>", *variable.count);
    for (uint64_t dimension : variable.dimensions) out += dimension ? fmt::format("[{}]", dimension) : "[]";
    if (variable.initializer) {
        out += " = ";
        print_initializer(out, *variable.initializer);
    }
}

void print_parameters(std::string& out, const std::vector<Variable>& parameters, const char* separator) {
    out += '(';
    for (size_t i = 0; i < parameters.size(); ++i) {
        if (i) out += ',';
        if (i || separator[0] == '\n') out += separator;
        print_variable(out, parameters[i]);
    }
    out += ')';
}

void print_directives(std::string& out, const std::vector<Directive>& directives) {
    for (const Directive& directive : directives) {
        out += fmt::format(" {}", word(directive.kind));
        for (size_t i = 0; i < directive.values.size(); ++i)
            out += fmt::format("{}{}", i ? ", " : " ", directive.values[i]);
        if (directive.kind != Directive::Kind::kPragma) continue;
        out += ' ';
        print_texts(out, directive.texts);
        out += ';';
    }
}

std::string print(const Module& module) {
    std::string out = fmt::format(".version {}.{}\n.target ", module.version_major, module.version_minor);
    for (size_t i = 0; i < module.target.size(); ++i)
        out += fmt::format("{}{}", i ? ", " : "", module.target[i]);
    out += fmt::format("\n.address_size {}\n\n", module.address_size);
    for (const Declaration& declaration : module.declarations)
        std::visit(DeclarationPrinter{out}, declaration);
    return out;
}

}  // namespace smt::ptx
