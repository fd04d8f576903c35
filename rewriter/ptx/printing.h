// What the files of the printer share.
#pragma once

#include <string>

#include "rewriter/ptx/syntax.h"

namespace smt::ptx {

void print_integer(std::string& out, uint64_t bits);
void print_float32(std::string& out, uint64_t bits);
void print_float64(std::string& out, uint64_t bits);
void print_offset(std::string& out, int64_t offset);  // nothing if it is 0
void print_operand(std::string& out, const Operand& operand);
void print_instruction(std::string& out, const Instruction& instruction);  // without ';'

void print_variable(std::string& out, const Variable& variable);  // without ';'
void print_parameters(std::string& out, const std::vector<Variable>& parameters, const char* separator);
void print_attributes(std::string& out, const std::vector<Attribute>& attributes);
void print_directives(std::string& out, const std::vector<Directive>& directives);
void print_texts(std::string& out, const std::vector<std::string>& texts);  // "a", "b"
void print_scope(std::string& out, const Scope& scope, int depth);

}  // namespace smt::ptx
