// What the files of the parser share: the cursor, the names in scope, and the function for each kind of node.
// All return false once the cursor has a failure.
#pragma once

#include "rewriter/ptx/constant.h"
#include "rewriter/ptx/cursor.h"
#include "rewriter/ptx/scopes.h"
#include "rewriter/ptx/syntax.h"

namespace smt::ptx {

struct Parsing {
    Cursor cursor;
    Scopes scopes;
};

template <typename Node>
void place(Node& node, const Token& token) {
    node.line = token.line;
    node.column = token.column;
}

// parse_variable.cpp
// Several, as in `.reg .b32 %a, %b<4>;`, with the ';'. They are in scope from then on.
bool parse_variables(Parsing& parsing, Linkage linkage, std::vector<Variable>* variables);
// One parameter of a function or prototype, up to the ',' or ')'.
bool parse_parameter(Parsing& parsing, Variable* parameter);
bool parse_attributes(Parsing& parsing, std::vector<Attribute>* attributes);
bool at_space(const Cursor& cursor);

// parse_initializer.cpp
bool parse_initializer(Parsing& parsing, Initializer* initializer);

// parse_function.cpp
bool parse_function(Parsing& parsing, Linkage linkage, Function* function);
bool parse_parameters(Parsing& parsing, std::vector<Variable>* parameters);
bool parse_directives(Parsing& parsing, std::vector<Directive>* directives);

// parse_body.cpp
bool parse_scope(Parsing& parsing, Scope* scope);
bool parse_pragma(Parsing& parsing, std::vector<std::string>* texts);  // with the ';'

// parse_instruction.cpp
bool parse_instruction(Parsing& parsing, Instruction* instruction);

// parse_operand.cpp
bool parse_operand(Parsing& parsing, Operand* operand);
bool parse_label_operand(Parsing& parsing, Operand* operand);
// (a, b, ...); results and arguments of calls
bool parse_list_operand(Parsing& parsing, Operand* operand);

}  // namespace smt::ptx
