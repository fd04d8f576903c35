#include "runtime/server/handlers/managed_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

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

// `look` asks the service, with the time that it may wait.
template <typename Look>
Service::Answer wait(Call& call, const Service& compiler, const Look& look) {
    const auto deadline = std::chrono::steady_clock::now() + compiler.settings().wait;
    Service::Answer answer;
    do {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        answer = look(std::clamp(left, 0ms, kSlice));
    } while (answer.state == Service::State::kPending && !call.session.closing() &&
             std::chrono::steady_clock::now() < deadline);
    return answer;
}

// Null, and a line that says why; none where nothing is known.
jit::ResultPointer take(Call& call, const Service& compiler, const Service::Answer& answer) {
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

jit::ResultPointer from_source(Call& call, Service& compiler, std::string_view image, uint32_t captures) {
    if (!Service::may_be_known(image)) return nullptr;
    call.session.await_captures(captures, std::min(compiler.settings().wait, kMessagePatience));
    return take(call, compiler, wait(call, compiler, [&](auto patience) { return compiler.wait(image, patience); }));
}

jit::ResultPointer from_ptx(Call& call, Service& compiler, std::string_view image) {
    if (!compiler.settings().ptx) return nullptr;
    const device::Properties& device = call.session.device().properties();
    jit::PtxChoice choice =
        jit::choose_ptx(image, 10 * device.compute_major + device.compute_minor, compiler.settings().ptx_bytes);
    if (!choice.reason.empty()) {
        call.session.note("an image is loaded as the program made it: " + choice.reason);
        return nullptr;
    }
    const std::string identity = compiler.submit_ptx(std::move(choice));
    return take(call, compiler, wait(call, compiler, [&](auto patience) { return compiler.wait_ptx(identity, patience); }));
}

}  // namespace

jit::ResultPointer find_managed(Call& call, std::string_view image, uint32_t captures) {
    Service& compiler = call.session.server().compiler();
    if (jit::ResultPointer found = from_source(call, compiler, image, captures)) return found;
    return from_ptx(call, compiler, image);
}

}  // namespace smt::runtime::server::handlers
