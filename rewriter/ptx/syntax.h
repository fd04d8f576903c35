// The syntax tree of a PTX module: what the text says, with names resolved to their kind and constant
// expressions folded. It owns all its strings, can be copied and changed, and prints as PTX (printer.h).
//
//   @!%p1 ld.global.v2.f32 {%f1, _}, [%rd2+8];
//
// is an Instruction with guard {"%p1", negated}, opcode kLd, modifiers {kGlobal, kV2}, types {kF32} and two
// operands: a kVector of kRegister and kSink, and a kAddress of a kRegister with offset 8.
//
// Two trees are equal (==) if they say the same, wherever in a text it stands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rewriter/ptx/names.h"

namespace smt::ptx {

// Where a node begins in the text it was parsed from; 0: it was not parsed.
struct Position {
    int line = 0;
    int column = 0;
    bool operator==(const Position&) const { return true; }
};

// ---- operands

struct Operand : Position {
    enum class Kind : uint8_t {
        kRegister,  // name; component for .x to .w of a vector register
        kSpecial,   // special, component, bits (the number of %envreg and %pm)
        kInteger,   // bits: 64-bit two's complement
        kFloat32,   // bits: the low 32; written 0f3F800000
        kFloat64,   // bits; written 0d... or as a decimal number
        kSymbol,    // name of a variable, parameter or function, + offset: its address
        kLabel,     // name of a label, or of a .branchtargets, .calltargets, .callprototype
        kAddress,   // [elements[0] + offset], and for textures and tensors [elements[0], elements[1], ...]
        kVector,    // {elements}
        kSink,      // _
        kPair,      // elements[0] | elements[1]: two results, the first a register, kSink or kVector
        kList,      // (elements): results or arguments of a call
    };
    Kind kind = Kind::kSink;
    bool negated = false;  // !p
    bool minus = false;    // -a, of video instructions
    Special special = Special::kTid;
    int8_t component = -1;  // 0 to 3: .x .y .z .w; -1: none
    std::string name;
    std::string selector;  // of video instructions: b0, h1, b3210; of an address: unified
    int64_t offset = 0;    // of kSymbol and kAddress, in bytes
    uint64_t bits = 0;
    std::vector<Operand> elements;

    bool operator==(const Operand&) const = default;
};

// ---- statements of a body

struct Guard {
    std::string name;  // of a predicate register
    bool negated = false;
    bool operator==(const Guard&) const = default;
};

struct Shape {  // m16n8k16; k is 0 in m8n8
    uint16_t m = 0, n = 0, k = 0;
    bool operator==(const Shape&) const = default;
};

struct Instruction : Position {
    std::optional<Guard> guard;
    Opcode opcode = Opcode::kRet;
    std::vector<Modifier> modifiers;  // in the order written
    std::vector<Type> types;          // in the order written
    // Where types stand among modifiers: bit i, the i-th word after the opcode is a type. 0: after all
    // modifiers.
    uint32_t type_places = 0;
    Shape shape;  // of Modifier::kShape
    // A call has always 3 or 4: kList of results, target, kList of arguments, and kLabel if it is indirect.
    std::vector<Operand> operands;

    bool has(Modifier modifier) const {
        return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
    }
    // The first of those in `any` that it has.
    std::optional<Modifier> first(std::initializer_list<Modifier> any) const {
        auto found = std::find_first_of(modifiers.begin(), modifiers.end(), any.begin(), any.end());
        return found == modifiers.end() ? std::nullopt : std::optional(*found);
    }
    int vector_width() const {
        return has(Modifier::kV2) ? 2 : has(Modifier::kV4) ? 4 : has(Modifier::kV8) ? 8 : 1;
    }

    bool operator==(const Instruction&) const = default;
};

struct Label : Position {
    std::string name;
    bool operator==(const Label&) const = default;
};

// name: .branchtargets or .calltargets
struct Targets : Position {
    std::string name;
    bool calls = false;
    std::vector<std::string> targets;
    bool operator==(const Targets&) const = default;
};

// .loc; kept to show source lines, and printed again.
struct Location : Position {
    uint32_t file = 0, source_line = 0, source_column = 0;
    std::string function_name;  // of inlined code: a label in .debug_str, or empty
    int64_t function_offset = 0;
    uint32_t at_file = 0, at_line = 0, at_column = 0;  // where it was inlined
    bool operator==(const Location&) const = default;
};

struct Pragma : Position {
    std::vector<std::string> texts;  // without the quotes; PTX has no escapes
    bool operator==(const Pragma&) const = default;
};

// ---- variables and parameters

enum class Space : uint8_t { kRegister, kGlobal, kConstant, kLocal, kShared, kParameter, kTexture };
enum class Linkage : uint8_t { kInternal, kExtern, kVisible, kWeak, kCommon };

// One value of an initialiser, or a list of them.
struct Initializer : Position {
    enum class Kind : uint8_t {
        kInteger,  // bits
        kFloat32,  // bits
        kFloat64,  // bits
        kSymbol,   // name + offset; generic(name) + offset; mask(name + offset)
        kWord,     // name: a setting of a .samplerref, as in addr_mode_0 = wrap
        kList,     // elements
    };
    Kind kind = Kind::kInteger;
    bool generic = false;  // its generic address
    uint64_t mask = 0;     // 0xFF00: this byte of the address; 0: all of it
    std::string name;
    std::string field;  // of .samplerref and .surfref lists: addr_mode_0, filter_mode, ...
    int64_t offset = 0;
    uint64_t bits = 0;
    std::vector<Initializer> elements;
    bool operator==(const Initializer&) const = default;
};

// .attribute(.managed), .attribute(.unified(1, 2))
struct Attribute {
    std::string name;  // without the dot
    std::vector<uint64_t> values;
    bool operator==(const Attribute&) const = default;
};

// A variable, register, parameter or parameter of a prototype (name "_").
struct Variable : Position {
    Linkage linkage = Linkage::kInternal;
    Space space = Space::kGlobal;
    Type type = Type::kB8;
    int vector = 1;          // .v2, .v4, .v8
    uint32_t alignment = 0;  // 0: of its type
    std::string name;
    std::optional<uint32_t> count;     // %r<72>: %r0 to %r71
    std::vector<uint64_t> dimensions;  // [4][8]; a first one of 0 is written []
    std::vector<Attribute> attributes;
    // Of kernel parameters that are pointers: .ptr .global .align 16
    bool pointer = false;
    std::optional<Space> pointer_space;
    uint32_t pointer_alignment = 0;
    std::optional<Initializer> initializer;
    bool operator==(const Variable&) const = default;
};

// ---- functions

struct Directive : Position {
    enum class Kind : uint8_t {
        kMaxntid,
        kReqntid,
        kMinnctapersm,
        kMaxnctapersm,
        kMaxnreg,
        kNoreturn,
        kExplicitcluster,
        kReqnctapercluster,
        kMaxclusterrank,
        kBlocksareclusters,
        kAbiPreserve,
        kAbiPreserveControl,
        kPragma,
    };
    Kind kind = Kind::kMaxntid;
    std::vector<uint64_t> values;
    std::vector<std::string> texts;  // of kPragma
    bool operator==(const Directive&) const = default;
};

// name: .callprototype (results) _ (parameters) directives;
struct Prototype : Position {
    std::string name;
    std::vector<Variable> results;
    std::vector<Variable> parameters;
    std::vector<Directive> directives;
    bool operator==(const Prototype&) const = default;
};

struct Statement;

struct Scope : Position {
    std::vector<Statement> statements;
    bool operator==(const Scope& other) const;
};

struct Statement : std::variant<Instruction, Label, Variable, Scope, Targets, Prototype, Location, Pragma> {
    using variant::variant;
    bool operator==(const Statement&) const = default;
};

inline bool Scope::operator==(const Scope& other) const { return statements == other.statements; }

struct Function : Position {
    Linkage linkage = Linkage::kInternal;
    bool kernel = false;  // .entry
    std::string name;
    std::vector<Attribute> attributes;
    std::vector<Variable> results;
    std::vector<Variable> parameters;
    std::vector<Directive> directives;
    std::optional<Scope> body;  // none: a declaration

    const Directive* find(Directive::Kind kind) const {
        for (const Directive& directive : directives)
            if (directive.kind == kind) return &directive;
        return nullptr;
    }
    bool operator==(const Function&) const = default;
};

// ---- the module

struct Alias : Position {
    std::string name, target;
    bool operator==(const Alias&) const = default;
};

struct File : Position {  // .file 1 "name", 1234, 56
    uint32_t index = 0;
    std::string name;
    std::optional<uint64_t> timestamp, bytes;
    bool operator==(const File&) const = default;
};

struct Section : Position {  // .section .debug_info { ... }; the text between the braces, as written
    std::string name;        // with the dot
    std::string text;
    bool operator==(const Section&) const = default;
};

using Declaration = std::variant<Variable, Function, Alias, File, Section, Pragma>;

struct Module {
    int version_major = 0, version_minor = 0;
    std::vector<std::string> target;  // sm_90, debug, texmode_independent, ...
    int address_size = 64;
    std::vector<Declaration> declarations;  // in the order written

    bool operator==(const Module&) const = default;
};

}  // namespace smt::ptx
