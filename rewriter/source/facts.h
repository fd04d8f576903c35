// What is known of a program after one walk over its syntax tree. The rules read this; they do not walk
// again.
//
// A template's instantiations are one function here, under the pattern that is written in the text: what any
// of them does counts. So do a lambda and its copies in the instantiations of the function around it.
#pragma once

#include <clang/AST/Decl.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/Stmt.h>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace smt::rewriter::source {

// A use of blockIdx, or of gridDim.
struct Read {
    bool grid = false;
    clang::SourceLocation where;
};

// A function that is called or whose address is taken.
struct Use {
    const clang::FunctionDecl* target = nullptr;  // Program::key of it
    clang::SourceLocation where;
};

struct Function {
    const clang::FunctionDecl* definition = nullptr;
    const clang::LambdaExpr* lambda = nullptr;  // set: this is a lambda's body
    const Function* around = nullptr;           // of a lambda
    std::vector<Read> reads;
    std::vector<const clang::ReturnStmt*> returns;
    std::vector<const clang::GCCAsmStmt*> assembly;
    std::vector<Use> uses;
    std::vector<clang::SourceRange> loops;
    std::map<unsigned, uint64_t>
        shared;             // bytes of each __shared__ variable, by its place; the most of all instances
    bool shares = false;    // has shared memory, of whatever size
    bool launches = false;  // starts kernels
    bool indirect = false;  // calls through a pointer, or virtually
    bool jumps = false;     // goto
    bool broken = false;    // Clang could not make sense of all of it
};

struct KernelFacts {
    const Function* function = nullptr;
    std::vector<const clang::FunctionDecl*> instances;  // itself, or what the module gets of a template
};

class Program {
public:
    // The program's one declaration for a function, its copies and its instantiations.
    const clang::FunctionDecl* key(const clang::FunctionDecl* function);
    // Null: its text was not seen.
    const Function* find(const clang::FunctionDecl* key) const {
        auto found = functions.find(key);
        return found == functions.end() ? nullptr : &found->second;
    }
    // All that may run when `from` runs, by key, itself first, then nearest first.
    std::vector<const clang::FunctionDecl*> reach(const clang::FunctionDecl* from) const;

    std::map<const clang::FunctionDecl*, Function> functions;  // by key
    std::set<const clang::FunctionDecl*> addressed;            // what an indirect call may call
    std::vector<KernelFacts> kernels;                          // in the order of the text
    bool shares = false;                                       // has shared memory outside of functions

private:
    std::map<unsigned, const clang::FunctionDecl*> lambdas_;  // by the place of the introducer
};

// device_only: functions that do not say where they run, run on the device (NVRTC).
Program collect(clang::ASTContext& context, bool device_only);

}  // namespace smt::rewriter::source
