#include "runtime/server/handlers/managed_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

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

// What to wait for; empty: nothing that we know.
std::string identify(Call& call, Service& compiler, std::string_view image, uint32_t captures) {
    if (jit::is_fatbin(image)) return compiler.request(image, target_of(call));
    if (!Service::may_be_known(image)) return "";
    call.session.await_captures(captures, std::min(compiler.settings().wait, kMessagePatience));
    return jit::identity_of(image);
}

}  // namespace

jit::ResultPointer find_managed(Call& call, std::string_view image, uint32_t captures) {
    Service& compiler = call.session.server().compiler();
    const std::string identity = identify(call, compiler, image, captures);
    if (identity.empty()) return nullptr;
    const Service::Answer answer = wait(call, compiler, identity);
    switch (answer.state) {
        case Service::State::kUnknown: return nullptr;
        case Service::State::kPending:
            call.session.note(fmt::format("an image is loaded as the program made it: its managed form was not there within {} s",
                                          compiler.settings().wait / 1s));
            return nullptr;
        case Service::State::kDone: break;
    }
    if (!answer.result->image.empty()) return answer.result;
    call.session.note("an image is loaded as the program made it: " + answer.result->reason);
    return nullptr;
}

}  // namespace smt::runtime::server::handlers
