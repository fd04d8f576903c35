// What single instructions mean for a kernel that is to become persistent. In words that a user understands.
//
// Two answers beside "nothing": a refusal, and "once". A worker that runs one block and then ends has what
// the hardware gives a block and a loop cannot: threads that really leave, shared memory with no barrier
// objects from before, no copy that still runs.
#include "rewriter/ptx/persistent/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "rewriter/device/smt_worker.h"
#include "rewriter/ptx/fence/fence.h"
#include "rewriter/ptx/persistent/forms.h"
#include "rewriter/ptx/persistent/walk.h"

namespace smt::ptx::persistent {

namespace {

constexpr int kOldest = 70;  // before, the threads of a warp ran in step

std::string refuse_special(const Operand& operand) {
    const char* name = ptx::name(operand.special);
    switch (operand.special) {
        case Special::kGridid:
            return "reads %gridid";
        case Special::kIsExplicitCluster:
        case Special::kClusterid:
        case Special::kNclusterid:
        case Special::kClusterCtaid:
        case Special::kClusterNctaid:
        case Special::kClusterCtarank:
        case Special::kClusterNctarank:
            return fmt::format("works with thread-block clusters ({})", name);
        case Special::kEnvreg:
            return "works with the whole grid at once (%envreg, as cooperative groups do)";
        case Special::kTotalSmemSize:
        case Special::kAggrSmemSize:
            return fmt::format("asks for the size of its shared memory ({}), which the loop changes", name);
        case Special::kReservedSmemOffsetBegin:
        case Special::kReservedSmemOffsetEnd:
        case Special::kReservedSmemOffsetCap:
        case Special::kReservedSmemOffset0:
        case Special::kReservedSmemOffset1:
            return "uses shared memory that the system prepares for each block";
        case Special::kCtaid:
        case Special::kNctaid:
            if (operand.component < 0 || operand.component > 2)
                return fmt::format("reads {} in another way than one component of x, y and z", name);
            return "";
        default:
            return "";
    }
}

std::string refuse(const Instruction& instruction) {
    using enum Opcode;
    const bool clusters = instruction.opcode == kMapa || instruction.opcode == kGetctarank ||
                          instruction.has(Modifier::kMulticastCluster) ||
                          instruction.has(Modifier::kCtaGroup2) ||
                          (instruction.opcode == kBarrier && instruction.has(Modifier::kCluster));
    if (clusters) return fmt::format("works with thread-block clusters ({})", ptx::name(instruction.opcode));
    if (instruction.opcode == kClusterlaunchcontrol) return "takes over other blocks (clusterlaunchcontrol)";
    if (instruction.opcode == kSetmaxnreg) return "changes its number of registers (setmaxnreg)";
    std::string reason;
    for (const Operand& whole : instruction.operands) {
        each_operand(whole, [&](const Operand& operand) {
            if (operand.kind == Operand::Kind::kSpecial && reason.empty()) reason = refuse_special(operand);
        });
    }
    return reason;
}

// The loop's own barrier is number 0, with all threads.
std::string once_for_barrier(const Instruction& instruction) {
    if (instruction.has(Modifier::kWarp) || instruction.has(Modifier::kCluster)) return "";
    if (instruction.has(Modifier::kArrive)) return "arrives at a barrier without waiting (bar.arrive)";
    const size_t number = instruction.has(Modifier::kRed) ? 1 : 0, most = number ? 3 : 1;
    if (instruction.operands.size() <= most) return "";
    const Operand& which = instruction.operands[number];
    if (which.kind == Operand::Kind::kInteger && which.bits != 0) return "";
    return "uses barrier 0 with some of the block's threads";
}

std::string once(const Instruction& instruction) {
    switch (instruction.opcode) {
        case Opcode::kMbarrier:
            return "has barrier objects in shared memory (mbarrier)";
        case Opcode::kWgmma:
            return "starts matrix products that run beside it (wgmma)";
        case Opcode::kTcgen05:
            return "uses tensor memory (tcgen05)";
        case Opcode::kCp:
            if (instruction.has(Modifier::kBulk)) return "starts bulk copies (cp.async.bulk)";
            return instruction.has(Modifier::kMbarrier)
                       ? "has barrier objects in shared memory (cp.async.mbarrier)"
                       : "";
        case Opcode::kSt:
        case Opcode::kRed:
            return instruction.has(Modifier::kAsync) ? "stores beside its threads (st.async)" : "";
        case Opcode::kBar:
        case Opcode::kBarrier:
            return once_for_barrier(instruction);
        default:
            return "";
    }
}

bool starts_kernels(const std::string& name) {
    constexpr std::array kParts = {"cudaLaunch",        "cudaGraphLaunch",    "cudaGetParameterBuffer",
                                   "cudaCDP",           "cudaDeviceSynchron", "cudaStreamCreateWith",
                                   "cudaStreamDestroy", "cudaEventRecord"};
    return std::any_of(kParts.begin(), kParts.end(),
                       [&](const char* part) { return name.find(part) != name.npos; });
}

// "sm_90a": 90
int architecture_of(const Module& module) {
    for (const std::string& word : module.target) {
        int number = 0;
        if (word.starts_with("sm_")) std::from_chars(word.data() + 3, word.data() + word.size(), number);
        if (number) return number;
    }
    return 0;
}

}  // namespace

void judge_instruction(const Instruction& instruction, Facts& facts) {
    if (fence::is_of_fence(instruction, *facts.function)) return;  // it ends the launch for good, or asks
    if (facts.refusal.empty()) facts.refusal = refuse(instruction);
    if (facts.refusal.empty() && instruction.opcode == Opcode::kExit && !facts.function->kernel)
        facts.refusal = "ends threads in a function that it calls (exit)";
    if (facts.once.empty()) facts.once = once(instruction);
    if (facts.once.empty() && instruction.opcode == Opcode::kAlloca && facts.function->kernel)
        facts.once = "takes stack as it goes (alloca)";
    facts.copies |= instruction.opcode == Opcode::kCp && instruction.has(Modifier::kAsync) &&
                    !instruction.has(Modifier::kBulk);
}

std::string refuse_unseen(const std::string& function) {
    constexpr std::array kSystem = {"vprintf", "malloc", "free", "__assertfail", "__trap"};
    if (std::find(kSystem.begin(), kSystem.end(), function) != kSystem.end()) return "";
    if (starts_kernels(function)) return fmt::format("starts kernels itself ({})", function);
    return fmt::format("calls {}, whose text is not here", function);
}

std::string refuse_entry(const Function& entry, const Module& module) {
    for (const Directive& directive : entry.directives) {
        using enum Directive::Kind;
        if (directive.kind == kExplicitcluster || directive.kind == kReqnctapercluster ||
            directive.kind == kMaxclusterrank || directive.kind == kBlocksareclusters)
            return "is launched in thread-block clusters (its directives say so)";
    }
    // Since PTX 8.1 there is more room, from sm_70 on.
    const uint64_t room =
        std::pair(module.version_major, module.version_minor) >= std::pair(8, 1) ? 32764 : 4352;
    uint64_t bytes = 0;
    auto add = [&](uint64_t size, uint64_t alignment) {
        bytes = (bytes + alignment - 1) / alignment * alignment + size;
    };
    for (const Variable& parameter : entry.parameters) {
        if (bits(parameter.type) == 0) return "has a texture or a sampler as a parameter";
        uint64_t size = static_cast<uint64_t>(std::max(bits(parameter.type), 8)) / 8;
        const uint64_t alignment = std::max<uint64_t>(parameter.alignment, size);
        for (const uint64_t dimension : parameter.dimensions) size *= dimension;
        add(size, alignment);
    }
    constexpr uint64_t kLaunchBytes = sizeof(smt::Launch);
    add(kLaunchBytes, 8);
    if (bytes <= room) return "";
    return fmt::format("has parameters of {} bytes, which leaves no room for one of {}", bytes - kLaunchBytes,
                       kLaunchBytes);
}

std::string refuse_module(const Module& module) {
    if (module.address_size != 64) return "its addresses have 32 bits";
    if (const int architecture = architecture_of(module); architecture < kOldest)
        return fmt::format("it is for sm_{}, where the threads of a warp ran in step", architecture);
    if (std::count(module.target.begin(), module.target.end(), "debug"))
        return "it was built for a debugger (-G)";
    for (const Declaration& declaration : module.declarations) {
        auto* variable = std::get_if<Variable>(&declaration);
        if (!variable) continue;
        for (const Attribute& attribute : variable->attributes)
            if (attribute.name == "managed")
                return fmt::format("it has a __managed__ variable ({}), which only machine code shows",
                                   variable->name);
    }
    return "";
}

}  // namespace smt::ptx::persistent
