#include "runtime/server/handlers/managed_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/jit/ptx.h"
#include "runtime/jit/service.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using namespace std::chrono_literals;
using jit::Service;

namespace {

constexpr std::chrono::milliseconds kMessagePatience = 2s;   // for a message that was sent already
constexpr std::chrono::milliseconds kSlice = 100ms;          // after which the session may be over

Service::Answer wait(Call& call, Service& compiler, const std::string& identity) {
    const auto deadline = std::chrono::steady_clock::now() + compiler.settings().wait;
    Service::Answer answer;
    do {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        answer = compiler.wait_for(identity, std::clamp(left, 0ms, kSlice));
    } while (answer.state == Service::State::kPending && !call.session.closing() &&
             std::chrono::steady_clock::now() < deadline);
    return answer;
}

// The simulated device executes PTX.
jit::Target target_of(Call& call) {
    const device::Properties& device = call.session.device().properties();
    return {10 * device.compute_major + device.compute_minor, device.keeps_sessions_apart};
}

ManagedImage none(Call& call, std::string reason) {
    call.session.note("an image is loaded as the program made it: " + reason);
    return {nullptr, std::move(reason), nullptr};
}

// No reason where nothing is known.
ManagedImage take(Call& call, Service& compiler, const std::string& identity) {
    if (identity.empty()) return {};
    const Service::Answer answer = wait(call, compiler, identity);
    switch (answer.state) {
        case Service::State::kUnknown: return {};
        case Service::State::kPending:
            return none(call, fmt::format("its managed form was not there within {} s", compiler.settings().wait / 1s));
        case Service::State::kDone: break;
    }
    if (!answer.result->image.empty()) return {answer.result, "", nullptr};
    ManagedImage refused = none(call, answer.result->reason);
    refused.refused = answer.result;
    return refused;
}

// What to wait for; empty: its source is not known.
std::string identify(Call& call, Service& compiler, std::string_view image, uint32_t captures) {
    if (jit::is_fatbin(image)) return compiler.request(image, target_of(call));
    if (!Service::may_be_known(image)) return "";
    call.session.await_captures(captures, std::min(compiler.settings().wait, kMessagePatience));
    return jit::identity_of(image);
}

ManagedImage from_ptx(Call& call, Service& compiler, std::string_view image) {
    if (!compiler.settings().ptx) return {nullptr, "PTX is not looked at (SMT_PTX=0)", nullptr};
    jit::PtxChoice choice = jit::choose_ptx(image, target_of(call).architecture, compiler.settings().ptx_bytes);
    if (!choice.reason.empty()) return none(call, std::move(choice.reason));
    return take(call, compiler, compiler.submit_ptx(std::move(choice), target_of(call)));
}

}  // namespace

ManagedImage find_managed(Call& call, std::string_view image, uint32_t captures) {
    Service& compiler = call.session.server().compiler();
    ManagedImage from_source = take(call, compiler, identify(call, compiler, image, captures));
    if (from_source.compiled) return from_source;
    ManagedImage found = from_ptx(call, compiler, image);
    if (!found.compiled && !from_source.reason.empty()) found.reason = from_source.reason + "; " + found.reason;
    return found;
}

}  // namespace smt::runtime::server::handlers
