#include "runtime/image/ptx_facts.h"

#include <algorithm>
#include <map>
#include <set>

#include "rewriter/ptx/layout.h"
#include "rewriter/ptx/parser.h"

namespace smt::image {

namespace {

// The last operand names the prototype or the list of targets.
bool is_call_through_pointer(const ptx::Instruction& instruction) {
    return instruction.opcode == ptx::Opcode::kCall && instruction.operands.size() > 3;
}

bool is_system_atomic(const ptx::Instruction& instruction) {
    return (instruction.opcode == ptx::Opcode::kAtom || instruction.opcode == ptx::Opcode::kRed) &&
           instruction.has(ptx::Modifier::kSys);
}

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// What a function's body has in it and what it names.
struct Uses {
    std::vector<const ptx::Variable*> own_shared;
    std::set<std::string_view> names;  // of variables and functions
    bool grid_workspace = false;
    bool calls_pointer = false;
    bool system_atomics = false;
};

class Collector {
public:
    explicit Collector(Uses& uses) : uses_(uses) {}

    void scope(const ptx::Scope& scope) {
        for (const ptx::Statement& statement : scope.statements) {
            if (auto* instruction = std::get_if<ptx::Instruction>(&statement)) {
                operands(instruction->operands);
                uses_.calls_pointer |= is_call_through_pointer(*instruction);
                uses_.system_atomics |= is_system_atomic(*instruction);
            }
            if (auto* variable = std::get_if<ptx::Variable>(&statement);
                variable && variable->space == ptx::Space::kShared)
                uses_.own_shared.push_back(variable);
            if (auto* inner = std::get_if<ptx::Scope>(&statement)) this->scope(*inner);
        }
    }

private:
    void operands(const std::vector<ptx::Operand>& operands) {
        using Kind = ptx::Operand::Kind;
        for (const ptx::Operand& operand : operands) {
            if (operand.kind == Kind::kSymbol) uses_.names.insert(operand.name);
            if (operand.kind == Kind::kSpecial && operand.special == ptx::Special::kEnvreg)
                uses_.grid_workspace |= operand.bits == 1 || operand.bits == 2;
            this->operands(operand.elements);
        }
    }

    Uses& uses_;
};

class Reader {
public:
    explicit Reader(const ptx::Module& module) : module_(module) {
        for (const ptx::Declaration& declaration : module.declarations) {
            if (auto* variable = std::get_if<ptx::Variable>(&declaration);
                variable && variable->space == ptx::Space::kShared)
                shared_.emplace(variable->name, variable);
            if (auto* alias = std::get_if<ptx::Alias>(&declaration))
                functions_[alias->name].names.insert(alias->target);
            auto* function = std::get_if<ptx::Function>(&declaration);
            if (!function) continue;
            if (!function->body)
                declared_.insert(function->name);
            else
                Collector(functions_[function->name]).scope(*function->body);
        }
    }

    PtxFacts read() const {
        PtxFacts facts{module_.version_major, module_.version_minor, module_.target, {}};
        for (const ptx::Declaration& declaration : module_.declarations) {
            auto* function = std::get_if<ptx::Function>(&declaration);
            if (function && function->kernel && function->body) facts.kernels.push_back(kernel(*function));
        }
        return facts;
    }

private:
    PtxKernel kernel(const ptx::Function& function) const {
        PtxKernel kernel;
        kernel.facts.name = function.name;
        kernel.facts.kernel = true;
        uint64_t offset = 0;
        for (const ptx::Variable& parameter : function.parameters) {
            offset = round_up(offset, ptx::alignment_of(parameter));
            const uint64_t bytes = ptx::bytes_of(parameter);
            kernel.facts.parameters.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)});
            offset += bytes;
        }
        read_directives(function, kernel.facts);
        read_body(function.name, kernel);
        return kernel;
    }

    static void read_directives(const ptx::Function& function, KernelFacts& facts) {
        using Kind = ptx::Directive::Kind;
        auto shape = [&](Kind kind, Shape& shape) {
            const ptx::Directive* directive = function.find(kind);
            if (!directive) return;
            shape = {1, 1, 1};
            for (size_t i = 0; i < std::min<size_t>(3, directive->values.size()); ++i)
                shape[i] = static_cast<uint32_t>(directive->values[i]);
        };
        shape(Kind::kMaxntid, facts.most_threads);
        shape(Kind::kReqntid, facts.required_block);
        shape(Kind::kReqnctapercluster, facts.cluster);
        facts.explicit_cluster = function.find(Kind::kExplicitcluster) != nullptr;
        facts.grid_of_clusters = function.find(Kind::kBlocksareclusters) != nullptr;
        if (const ptx::Directive* rank = function.find(Kind::kMaxclusterrank); rank && !rank->values.empty())
            facts.most_cluster_blocks = static_cast<uint32_t>(rank->values[0]);
    }

    // The kernel and what it reaches by name; each shared variable counts once.
    void read_body(const std::string& name, PtxKernel& kernel) const {
        std::set<std::string_view> reached{name};
        std::vector<std::string_view> to_do{name};
        std::vector<const ptx::Variable*> shared;
        bool any = false;  // of the module's functions
        while (!to_do.empty()) {
            auto function = functions_.find(to_do.back());
            to_do.pop_back();
            if (function == functions_.end()) continue;
            const Uses& uses = function->second;
            kernel.cooperative |= uses.grid_workspace;
            kernel.system_atomics |= uses.system_atomics;
            any |= uses.calls_pointer;
            shared.insert(shared.end(), uses.own_shared.begin(), uses.own_shared.end());
            for (std::string_view used : uses.names) {
                if (!reached.insert(used).second) continue;
                to_do.push_back(used);
                if (auto variable = shared_.find(used); variable != shared_.end())
                    shared.push_back(variable->second);
            }
        }
        kernel.system_atomics |= any && any_system_atomics();
        for (const std::string_view each : declared_) {
            if (functions_.find(each) != functions_.end()) continue;  // its body follows
            if (reached.contains(each) || (any && is_used(each))) kernel.facts.externs.emplace_back(each);
        }
        uint64_t bytes = 0;
        for (const ptx::Variable* variable : shared) {
            const bool open = variable->linkage == ptx::Linkage::kExtern || ptx::bytes_of(*variable) == 0;
            kernel.dynamic_shared |= open;
            if (!open) bytes = round_up(bytes, ptx::alignment_of(*variable)) + ptx::bytes_of(*variable);
        }
        kernel.facts.shared_bytes = static_cast<uint32_t>(bytes);
    }

    bool any_system_atomics() const {
        return std::any_of(functions_.begin(), functions_.end(),
                           [](const auto& each) { return each.second.system_atomics; });
    }

    bool is_used(std::string_view name) const {
        return std::any_of(functions_.begin(), functions_.end(),
                           [&](const auto& each) { return each.second.names.contains(name); });
    }

    const ptx::Module& module_;
    std::map<std::string, Uses, std::less<>> functions_;  // with a body, by name
    std::set<std::string_view> declared_;                 // functions, not all of them without one
    std::map<std::string, const ptx::Variable*, std::less<>> shared_;  // of the module, by name
};

}  // namespace

std::variant<PtxFacts, Problem> ptx_facts(std::string_view text) {
    auto parsed = ptx::parse(text);
    if (auto* diagnostic = std::get_if<ptx::Diagnostic>(&parsed)) return Problem{ptx::to_string(*diagnostic)};
    return Reader(std::get<ptx::Module>(parsed)).read();
}

std::set<std::string, std::less<>> kernels_with_system_atomics(std::string_view text) {
    constexpr std::string_view kSystem = ".sys";
    std::set<std::string, std::less<>> kernels;
    bool any = false;
    for (size_t at = text.find(kSystem); at != text.npos && !any; at = text.find(kSystem, at + 1)) {
        const std::string_view before = text.substr(0, at);
        const std::string_view opcode = before.substr(before.find_last_of(" \t\r\n;{}") + 1);
        any = opcode.starts_with("atom") || opcode.starts_with("red");
    }
    if (!any) return kernels;
    const auto facts = ptx_facts(text);
    if (const auto* read = std::get_if<PtxFacts>(&facts))
        for (const PtxKernel& kernel : read->kernels)
            if (kernel.system_atomics) kernels.insert(kernel.facts.name);
    return kernels;
}

}  // namespace smt::image
