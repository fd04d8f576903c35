// The host's C and C++ library, as far as NVRTC has something in its place.
#include "rewriter/source/extract/standard.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/Basic/SourceManager.h>
#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <string_view>
#include <utility>

namespace smt::rewriter::source {

using namespace clang;

namespace {

// NVRTC's own.
const std::set<std::string> kBuiltIn = {"size_t",           "ptrdiff_t", "nullptr_t",
                                        "initializer_list", "move",      "forward"};

// libcu++'s header, and what it has in namespace cuda::std: types whose layout is the host's, too, and what
// has no layout. std::tuple's is another.
constexpr std::pair<const char*, const char*> kElsewhere[] = {
    {"__algorithm/min.h", " min "},
    {"__algorithm/max.h", " max "},
    {"__algorithm/clamp.h", " clamp "},
    {"array", " array "},
    {"bit", " bit_cast "},
    {"complex", " complex "},
    {"cstddef", " byte "},
    {"functional",
     " plus minus multiplies divides modulus negate less greater less_equal greater_equal equal_to "
     "not_equal_to "},
    {"limits", " numeric_limits "},
    {"type_traits",
     " integral_constant bool_constant true_type false_type conditional conditional_t enable_if enable_if_t "
     "void_t "
     "is_same is_same_v is_integral is_integral_v is_floating_point is_floating_point_v is_arithmetic "
     "is_arithmetic_v "
     "is_signed is_signed_v is_unsigned is_unsigned_v is_pointer is_pointer_v is_convertible "
     "is_convertible_v is_base_of "
     "is_base_of_v is_trivially_copyable is_trivially_copyable_v is_const is_const_v is_enum is_enum_v "
     "is_void is_void_v "
     "remove_cv remove_cv_t remove_const remove_const_t remove_reference remove_reference_t remove_pointer "
     "remove_pointer_t "
     "decay decay_t make_signed make_signed_t make_unsigned make_unsigned_t underlying_type "
     "underlying_type_t "
     "invoke_result invoke_result_t common_type common_type_t is_invocable is_invocable_v "},
    {"utility",
     " swap exchange pair make_pair declval integer_sequence index_sequence make_index_sequence "
     "make_integer_sequence "
     "index_sequence_for as_const "},
};

const char* elsewhere(const std::string& name) {
    for (const auto& [header, names] : kElsewhere)
        if (std::string_view(names).find(" " + name + " ") != std::string_view::npos) return header;
    return nullptr;
}

}  // namespace

bool Standard::has_global_function(const std::string& name) const {
    const DeclarationName wanted(&context_.Idents.get(name));
    for (const NamedDecl* found : context_.getTranslationUnitDecl()->lookup(wanted))
        if (isa<FunctionDecl, FunctionTemplateDecl>(found)) return true;
    return false;
}

bool Standard::take(const NamedDecl* declaration) {
    const bool standard = declaration->isInStdNamespace();
    if (!declaration->getDeclName().isIdentifier()) return standard;  // an operator is found with its type
    const std::string name = declaration->getNameAsString();
    if (standard && kBuiltIn.count(name) != 0) return true;
    if (const auto* type = dyn_cast<TypedefNameDecl>(declaration); type && !type->getDescribedTemplate()) {
        const QualType meaning = type->getUnderlyingType().getCanonicalType();
        if (const auto* simple = dyn_cast<BuiltinType>(meaning)) {
            types_[name] = simple->getName(context_.getPrintingPolicy()).str();
            return true;
        }
    }
    const bool function = isa<FunctionDecl>(declaration);
    if (function && !standard) return true;  // CUDA's own, or the program would not have compiled
    if (const char* header = standard ? elsewhere(name) : nullptr) {
        headers_.insert(fmt::format("#include <cuda/std/{}>", header));
        lines_.insert(fmt::format("namespace std {{ using ::cuda::std::{}; }}", name));
        return true;
    }
    if (function && has_global_function(name)) {
        lines_.insert(fmt::format("namespace std {{ using ::{}; }}", name));
        return true;
    }
    return false;
}

std::string Standard::includes() const {
    std::string text;
    for (const std::string& line : headers_) text += line + "\n";
    return text;
}

std::string Standard::declarations(bool beside_libraries) const {
    std::string text;
    for (const auto& [name, meaning] : types_)
        text += beside_libraries
                    ? fmt::format("typedef {} smt_{};\n#define {} smt_{}\n", meaning, name, name, name)
                    : fmt::format("typedef {} {};\n", meaning, name);
    for (const auto& [name, meaning] : types_)
        text += fmt::format("namespace std {{ using ::{}; }}\n", name);  // a macro by now
    for (const std::string& line : lines_) text += line + "\n";
    return text;
}

std::string builtin_stand_ins(const std::string& text) {
    constexpr std::pair<const char*, const char*> kStandIns[] = {
        {"__builtin_inff", "__builtin_inff() __int_as_float(0x7f800000)"},
        {"__builtin_huge_valf", "__builtin_huge_valf() __int_as_float(0x7f800000)"},
        {"__builtin_nanf", "__builtin_nanf(text) __int_as_float(0x7fc00000)"},
        {"__builtin_inf", "__builtin_inf() __longlong_as_double(0x7ff0000000000000)"},
        {"__builtin_huge_val", "__builtin_huge_val() __longlong_as_double(0x7ff0000000000000)"},
        {"__builtin_nan", "__builtin_nan(text) __longlong_as_double(0x7ff8000000000000)"},
        {"__builtin_offsetof", "__builtin_offsetof(type, member) ((unsigned long)&((type*)0)->member)"},
    };
    std::string lines;
    for (const auto& [name, definition] : kStandIns) {
        for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; ++at) {
            const char after = text[at + std::strlen(name)];
            if (std::isalnum(static_cast<unsigned char>(after)) != 0 || after == '_') continue;
            lines += fmt::format("#define {}\n", definition);
            break;
        }
    }
    return lines;
}

}  // namespace smt::rewriter::source
