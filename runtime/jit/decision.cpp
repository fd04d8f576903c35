#include "runtime/jit/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/jit/ptx.h"

namespace smt::runtime::jit {

namespace {

Decision none(const Deciding& how, std::string reason) {
    how.say(reason);
    return {nullptr, std::move(reason), nullptr, std::nullopt};
}

// No reason where nothing is known.
Decision take(const std::string& identity, const Deciding& how) {
    if (identity.empty()) return {};
    const Service::Answer answer = how.wait(identity);
    switch (answer.state) {
        case Service::State::kUnknown:
            return {};
        case Service::State::kPending: {
            Decision later = none(how, how.late());
            later.awaited.emplace();
            return later;
        }
        case Service::State::kDone:
            break;
    }
    if (!answer.result->image.empty()) return {answer.result, "", nullptr, std::nullopt};
    Decision refused = none(how, answer.result->reason);
    refused.refused = answer.result;
    return refused;
}

// What to wait for; empty: its source is not known.
std::string identify(Service& service, std::string_view image, const Choices& choices, const Deciding& how) {
    if (is_fatbin(image)) return service.request(how.tenant, image, choices);
    return Service::may_be_known(image) ? identity_of(image) : "";
}

Decision from_ptx(Service& service, Awaited& awaited, const Target& target, const Deciding& how) {
    if (awaited.ptx.empty()) {
        if (!service.settings().ptx)
            return {nullptr, "PTX is not looked at (ptx=0 in SMT_COMPILE)", nullptr, std::nullopt};
        if (!awaited.choice.reason.empty()) return none(how, std::move(awaited.choice.reason));
        awaited.ptx = service.submit_ptx(how.tenant, std::move(awaited.choice), target);
    }
    return take(awaited.ptx, how);
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
    std::string source = identify(service, image, choices, how);
    return decide_again(service, {std::move(source), "", std::move(choices.ptx), ""}, target, how);
}

Decision decide_again(Service& service, Awaited awaited, const Target& target, const Deciding& how) {
    if (Decision found = take(awaited.source, how); found.compiled || found.awaited) {
        if (found.awaited) found.awaited = std::move(awaited);
        return found;
    } else if (!found.reason.empty()) {
        awaited.reason = found.reason + "; ";
    }
    awaited.source.clear();
    Decision found = from_ptx(service, awaited, target, how);
    if (!found.compiled) found.reason = awaited.reason + found.reason;
    if (found.awaited) found.awaited = std::move(awaited);
    return found;
}

}  // namespace smt::runtime::jit
