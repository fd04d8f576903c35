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

Service::Answer wait(Call& call, Service& compiler, std::string_view image) {
    const auto deadline = std::chrono::steady_clock::now() + compiler.settings().wait;
    Service::Answer answer;
    do {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        answer = compiler.wait(image, std::clamp(left, 0ms, kSlice));
    } while (answer.state == Service::State::kPending && !call.session.closing() &&
             std::chrono::steady_clock::now() < deadline);
    return answer;
}

}  // namespace

jit::ResultPointer find_managed(Call& call, std::string_view image, uint32_t captures) {
    if (!Service::may_be_known(image)) return nullptr;
    Service& compiler = call.session.server().compiler();
    call.session.await_captures(captures, std::min(compiler.settings().wait, kMessagePatience));
    const Service::Answer answer = wait(call, compiler, image);
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
