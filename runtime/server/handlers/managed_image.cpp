#include "runtime/server/handlers/managed_image.h"

#include <algorithm>
#include <chrono>
#include <string>

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
        answer = compiler.wait_for(call.session.id(), identity, std::clamp(left, 0ms, kSlice));
    } while (answer.state == Service::State::kPending && !call.session.closing() &&
             std::chrono::steady_clock::now() < deadline);
    return answer;
}

// The simulated device executes PTX.
jit::Target target_of(Call& call) {
    const device::Properties& device = call.session.device().properties();
    return {10 * device.compute_major + device.compute_minor, device.keeps_sessions_apart};
}

}  // namespace

jit::Decision find_managed(Call& call, std::string_view image, uint32_t captures) {
    Service& compiler = call.session.server().compiler();
    if (!jit::is_fatbin(image) && Service::may_be_known(image))
        call.session.await_captures(captures, std::min(compiler.settings().wait, kMessagePatience));
    return jit::decide(compiler, image, target_of(call),
                       {[&](const std::string& identity) { return wait(call, compiler, identity); },
                        [&](const std::string& reason) { call.session.note("an image is loaded as the program made it: " + reason); },
                        call.session.id()});
}

}  // namespace smt::runtime::server::handlers
