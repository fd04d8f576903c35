// See environment_check.h. What each variable may say stands in runtime/protocol/environment.h.
#include "tools/smt/environment_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "runtime/protocol/environment.h"
#include "runtime/protocol/environment_number.h"
#include "runtime/protocol/handshake.h"
#include "runtime/schedule/policy.h"
#include "tools/smt/command.h"
#include "tools/smt/places.h"
#include "tools/smt/settings.h"

namespace smt::tools {
namespace {

using namespace environment;

constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

struct Number {
    const char* name;
    uint64_t least, most;
};
constexpr Number kNumbers[] = {
    {kSimMultiprocessors, 1, kSimMultiprocessorsMax},
    {kSimMemory, kSimMemoryLeast, kSimMemoryMost},
    {kSimStepLimit, 0, kAny},
    {kSimGrace, 1, kSimGraceMax},
    {kSimTenants, 0, kSimTenantsMax},
    {kSimDispatchClock, 0, 1},
    {kSimLoadsWait, 0, 1},
    {kMemoryLimit, 0, kAny},
    {kHostMemory, 0, kAny},
    {kMultiprocessors, 0, kMultiprocessorsMax},
    {kStress, 0, std::numeric_limits<uint32_t>::max()},
    {kMapping, 0, 1},
    {kAhead, 0, kAheadMax},
    {kIdleSeconds, 0, kIdleSecondsMax},
    {kSessionLanes, 1, kSessionLanesMax},
    {kSessionStreams, 1, kSessionStreamsMax},
    {kWaitSeconds, 1, kWaitSecondsMax},
    {kJournalTimes, 0, 1},
    {kCoreDump, 0, 1},
    {kReportUnsupported, 0, 1},
    {kCapture, 0, 1},
    {kCompileWorkers, 1, kCompileWorkersMax},
    {kCompileSeconds, 1, kCompileSecondsMax},
    {kCompileMemory, 0, kAny},
    {kCompileWait, 0, kCompileWaitMax},
    {kPtx, 0, 1},
    {kPtxSize, 0, kPtxSizeMax},
    {kCacheSize, 0, kAny},
};

struct Choice {
    const char* name;
    std::vector<std::string> words;
};
const std::vector<Choice>& choices() {
    static const std::vector<Choice> all = {
        {kDevice, {kDeviceGpu, kDeviceSimulated}},
        {kFallback, {"error", "native"}},
        {kPtxCompiler, {kPtxCompilerWorker, kPtxCompilerDriver}},
        {kProfile, {"times", "counters", "sweep", "halves", "pairs"}},
    };
    return all;
}

// Paths and names: whoever uses them says what is wrong.
constexpr const char* kTexts[] = {kRuntimeDir, kServer,  kDriver, kRealDriver, kTenant,   kPriority, kWeight,
                                  kPolicy,     kRecord,  kCompiler, kNvrtc,    kNvJitLink, kCacheDir, kProfiles, kCupti, kSimStreams};

std::string problem_of(const Number& number) {
    const std::string text = variable(number.name);
    uint64_t value = 0;
    if (text.empty() || read_number(text.c_str(), number.least, number.most, &value)) return "";
    if (number.most == kAny) return fmt::format("{} is '{}', not a number such as 800 or 4G", number.name, text);
    return fmt::format("{} is '{}', not a number from {} to {}", number.name, text, number.least, number.most);
}

std::string problem_of(const Choice& choice) {
    const std::string text = variable(choice.name);
    if (text.empty() || std::find(choice.words.begin(), choice.words.end(), text) != choice.words.end()) return "";
    return fmt::format("{} is '{}', not one of: {}", choice.name, text, fmt::join(choice.words, ", "));
}

// By what smt run makes of the same option.
template <typename Parse>
std::string problem_of(const char* name, Parse parse) {
    const std::string text = variable(name);
    if (text.empty()) return "";
    try {
        parse(text);
    } catch (const Misuse& misuse) {
        return fmt::format("{}: {}", name, misuse.what());
    }
    return "";
}

void check_policy(const std::string& wanted) {
    if (const std::string problem = runtime::schedule::policy_problem(wanted); !problem.empty()) throw Misuse(problem);
}

void check_folder(const std::string& path) {
    if (path.front() != '/') throw Misuse("it is '" + path + "', no absolute path");
}

void check_tenant(const std::string& name) {
    if (name.size() >= protocol::kTenantNameBytes) throw Misuse("a tenant's name has at most 63 bytes");
}

}  // namespace

std::vector<std::string> environment_problems() {
    std::vector<std::string> problems;
    for (const Number& number : kNumbers) problems.push_back(problem_of(number));
    for (const Choice& choice : choices()) problems.push_back(problem_of(choice));
    problems.push_back(problem_of(kPriority, parse_priority));
    problems.push_back(problem_of(kWeight, parse_weight));
    problems.push_back(problem_of(kPolicy, check_policy));
    problems.push_back(problem_of(kTenant, check_tenant));
    problems.push_back(problem_of(kRuntimeDir, check_folder));
    std::erase(problems, "");
    return problems;
}

std::vector<std::string> unknown_variables() {
    auto is_known = [](const std::string& name) {
        auto is_it = [&](const auto& each) { return name == each.name; };
        return std::any_of(std::begin(kNumbers), std::end(kNumbers), is_it) || std::any_of(choices().begin(), choices().end(), is_it) ||
               std::find(std::begin(kTexts), std::end(kTexts), name) != std::end(kTexts);
    };
    std::vector<std::string> unknown;
    for (char** at = environ; *at; ++at) {
        const std::string entry = *at, name = entry.substr(0, entry.find('='));
        if (name.starts_with("SMT_") && !is_known(name)) unknown.push_back(name);
    }
    return unknown;
}

void check_environment() {
    for (const std::string& problem : environment_problems()) throw Failure(problem);
}

}  // namespace smt::tools
