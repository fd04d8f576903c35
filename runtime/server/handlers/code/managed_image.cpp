#include "runtime/server/handlers/code/managed_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "runtime/server/handlers/code/machine_code.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using namespace std::chrono_literals;
using jit::Service;

namespace {

constexpr std::chrono::milliseconds kMessageTimeout = 2s;  // for a message that is already sent
constexpr std::chrono::milliseconds kSlice = 100ms;        // interval of checks whether the session ends

// An experiment is about managed forms, so its sessions wait as long as a compile may take.
std::chrono::milliseconds patience(Call& call, const Service& compiler) {
    const jit::Settings& settings = compiler.settings();
    const bool tried = call.session.dispatched().tried() || call.session.server().measuring();
    return tried ? std::max(settings.wait, settings.time + 1s) : settings.wait;
}

Service::Answer wait(Call& call, Service& compiler, const std::string& identity) {
    const auto deadline = std::chrono::steady_clock::now() + patience(call, compiler);
    Service::Answer answer;
    do {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        answer = compiler.wait_for(call.session.id(), identity, std::clamp(left, 0ms, kSlice));
    } while (answer.state == Service::State::kPending && !call.session.closing() &&
             std::chrono::steady_clock::now() < deadline);
    return answer;
}

std::string late(Call& call, const Service& compiler) {
    const auto seconds = patience(call, compiler) / 1s;
    return seconds == 0 ? kNotMade : fmt::format("its managed form was not there within {} s", seconds);
}

// The simulated device executes PTX.
jit::Target target_of(Call& call) {
    const device::Properties& device = call.session.device().properties();
    return {10 * device.compute_major + device.compute_minor, device.keeps_sessions_apart,
            worker_makes_machine_code(call) && !call.session.fence()};  // fenced: as its blocks are to fit
}

}  // namespace

bool waits_for_forms(Call& call) { return patience(call, call.session.server().compiler()) > 0ms; }

size_t managed_kernels(const jit::Result& form) {
    return static_cast<size_t>(std::ranges::count_if(
        form.kernels, [](const jit::CompiledKernel& kernel) { return !kernel.managed.empty(); }));
}

jit::Decision find_managed(Call& call, std::string_view image, jit::Choices choices, uint32_t captures) {
    Service& compiler = call.session.server().compiler();
    if (!jit::is_fatbin(image) && Service::may_be_known(image))
        call.session.await_captures(captures, kMessageTimeout);
    return jit::decide(compiler, image, std::move(choices), target_of(call),
                       {[&](const std::string& identity) { return wait(call, compiler, identity); },
                        [&](const std::string& reason) {
                            call.session.note("an image is loaded as the program made it: " + reason);
                        },
                        call.session.id(), [&] { return late(call, compiler); }});
}

jit::Decision find_managed_again(Call& call, jit::Awaited awaited) {
    Service& compiler = call.session.server().compiler();
    return jit::decide_again(
        compiler, std::move(awaited), target_of(call),
        {[&](const std::string& identity) { return compiler.wait_for(call.session.id(), identity, 0ms); },
         [](const std::string&) {}, call.session.id()});
}

}  // namespace smt::runtime::server::handlers
