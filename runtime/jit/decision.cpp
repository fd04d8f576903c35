#include "runtime/jit/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/jit/ptx.h"

namespace smt::runtime::jit {

namespace {

Decision none(const Deciding& how, std::string reason) {
    how.say(reason);
    return {nullptr, std::move(reason), nullptr};
}

// No reason where nothing is known.
Decision take(const std::string& identity, const Deciding& how) {
    if (identity.empty()) return {};
    const Service::Answer answer = how.wait(identity);
    switch (answer.state) {
        case Service::State::kUnknown:
            return {};
        case Service::State::kPending:
            return none(how, how.late());
        case Service::State::kDone:
            break;
    }
    if (!answer.result->image.empty()) return {answer.result, "", nullptr};
    Decision refused = none(how, answer.result->reason);
    refused.refused = answer.result;
    return refused;
}

// What to wait for; empty: its source is not known.
std::string identify(Service& service, std::string_view image, const Choices& choices, const Deciding& how) {
    if (is_fatbin(image)) return service.request(how.tenant, image, choices);
    return Service::may_be_known(image) ? identity_of(image) : "";
}

Decision from_ptx(Service& service, PtxChoice choice, const Target& target, const Deciding& how) {
    if (!service.settings().ptx) return {nullptr, "PTX is not looked at (ptx=0 in SMT_COMPILE)", nullptr};
    if (!choice.reason.empty()) return none(how, std::move(choice.reason));
    return take(service.submit_ptx(how.tenant, std::move(choice), target), how);
}

}  // namespace

std::string Decision::why_unmanaged(std::string_view kernel) const {
    const ResultPointer& looked_at = compiled ? compiled : refused;
    if (looked_at) {
        for (const CompiledKernel& each : looked_at->kernels) {
            if (each.symbol != kernel) continue;
            if (compiled && !each.managed.empty()) return "";
            if (!each.reason.empty()) return each.reason;
        }
    }
    return compiled ? "the managed form of its image does not name it" : reason;
}

bool Decision::system_atomics(std::string_view kernel) const {
    const ResultPointer& looked_at = compiled ? compiled : refused;
    return looked_at &&
           std::any_of(looked_at->kernels.begin(), looked_at->kernels.end(), [&](const CompiledKernel& each) {
               return each.symbol == kernel && each.system_atomics;
           });
}

Decision decide(Service& service, std::string_view image, Choices choices, const Target& target,
                const Deciding& how) {
    Decision from_source = take(identify(service, image, choices, how), how);
    if (from_source.compiled) return from_source;
    Decision found = from_ptx(service, std::move(choices.ptx), target, how);
    if (!found.compiled && !from_source.reason.empty())
        found.reason = from_source.reason + "; " + found.reason;
    return found;
}

}  // namespace smt::runtime::jit
