#include "runtime/server/handlers/code/managed_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using namespace std::chrono_literals;
using jit::Service;

namespace {

constexpr std::chrono::milliseconds kMessageTimeout = 2s;  // for a message that is already sent
constexpr std::chrono::milliseconds kSlice = 100ms;        // interval of checks whether the session ends

// Bound of the slowdown of a program that compiles hundreds of kernels: once its loads have waited kLongWaits
// times the limit of one load, each further load waits at most kBriefly, which is enough for PTX.
constexpr int kLongWaits = 3;
constexpr std::chrono::milliseconds kBriefly = 100ms;

bool waits_briefly(const Session& session, const Service& compiler) {
    return session.waited_for_code() >= kLongWaits * compiler.settings().wait;
}

Service::Answer wait(Call& call, Service& compiler, const std::string& identity, bool briefly) {
    const std::chrono::milliseconds all = compiler.settings().wait;
    const auto began = std::chrono::steady_clock::now();
    const auto deadline = began + (briefly ? std::min(all, kBriefly) : all);
    Service::Answer answer;
    do {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        answer = compiler.wait_for(call.session.id(), identity, std::clamp(left, 0ms, kSlice));
    } while (answer.state == Service::State::kPending && !call.session.closing() &&
             std::chrono::steady_clock::now() < deadline);
    call.session.note_wait_for_code(std::chrono::steady_clock::now() - began);
    return answer;
}

std::string late(bool briefly, const Service& compiler) {
    const auto seconds = compiler.settings().wait / 1s;
    return briefly
               ? fmt::format("its managed form was not there yet, and the program has waited {} s for others",
                             kLongWaits * seconds)
               : fmt::format("its managed form was not there within {} s", seconds);
}

// The simulated device executes PTX.
jit::Target target_of(Call& call) {
    const device::Properties& device = call.session.device().properties();
    return {10 * device.compute_major + device.compute_minor, device.keeps_sessions_apart};
}

}  // namespace

jit::Decision find_managed(Call& call, std::string_view image, jit::Choices choices, uint32_t captures) {
    Service& compiler = call.session.server().compiler();
    if (!jit::is_fatbin(image) && Service::may_be_known(image))
        call.session.await_captures(captures, std::min(compiler.settings().wait, kMessageTimeout));
    bool briefly = false;
    return jit::decide(compiler, image, std::move(choices), target_of(call),
                       {[&](const std::string& identity) {
                            briefly = waits_briefly(call.session, compiler);
                            return wait(call, compiler, identity, briefly);
                        },
                        [&](const std::string& reason) {
                            call.session.note("an image is loaded as the program made it: " + reason);
                        },
                        call.session.id(), [&] { return late(briefly, compiler); }});
}

}  // namespace smt::runtime::server::handlers
