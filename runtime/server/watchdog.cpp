#include "runtime/server/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/journal/journal.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kMostPatience{10};  // for blocks in hand: they have had the limit already
constexpr auto kStandbyComes = 30s;                // for one that is being started
constexpr auto kSuspicious = 400ms;                // without progress
constexpr CUresult kTimeout = CUDA_ERROR_LAUNCH_TIMEOUT;

double seconds(schedule::Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void Watchdog::look() {
    if (case_)
        go_on();
    else if (server_.dispatcher().watches())
        look_at_kernels();
    const bool watches = server_.dispatcher().watches();
    const bool holds = case_ || (watches && watch_.longest() >= kSuspicious);
    if (holds != std::exchange(holds_, holds)) server_.device().hold_wide_calls(holds);
    if (watches) server_.device().make_deferred_calls();
}

void Watchdog::look_at_kernels() {
    std::vector<KernelWatch::Seat> seats;
    server_.each_session([&](Session& session) {
        const std::vector<KernelWatch::Seat> its = session.streams().running();
        seats.insert(seats.end(), its.begin(), its.end());
    });
    if (const auto overdue = watch_.look(server_.dispatcher().now(), seats)) begin(*overdue);
}

void Watchdog::begin(const KernelWatch::Overdue& overdue) {
    const std::string name = journal::Reader(server_.journal().path()).name(overdue.seat.running.name);
    const bool stops = overdue.seat.running.stops;
    const schedule::Duration limit = overdue.seat.limit;
    server_.each_session([&](Session& session) {
        if (session.id() != overdue.seat.session) return;
        case_ =
            Case{session.id(), fmt::format("kernel {} of {} has run for {:.1f} s without progress, and its "
                                           "limit is {:.0f} s (SMT_KERNEL_LIMIT)",
                                           name, session.called(), seconds(overdue.lasted), seconds(limit))};
        case_->until = Clock::now() + (stops ? std::min<schedule::Duration>(limit, kMostPatience) : 0s);
        server_.offences().add(session.tenant(), journal::now_ns());
        session.note(
            fmt::format("ended: {}: its calls return CUDA_ERROR_LAUNCH_TIMEOUT, its launches are dropped, "
                        "{}",
                        case_->kernel,
                        stops ? "and the kernel gets no further block" : "and the kernel cannot be stopped"));
        session.end_work(kTimeout, fmt::format("CUDA_ERROR_LAUNCH_TIMEOUT ({}): {}",
                                               static_cast<int>(kTimeout), case_->kernel));
    });
}

void Watchdog::go_on() {
    bool works = false;  // a session that is gone has no work
    server_.each_session([&](Session& session) {
        if (session.id() == case_->session) works = session.works();
    });
    if (works && !case_->forced && Clock::now() >= case_->until) force();
    if (works) return;
    if (!case_->forced)
        server_.note(fmt::format("{}: it has ended after its last blocks, and other programs were left alone",
                                 case_->kernel));
    case_.reset();
}

void Watchdog::force() {
    server_.each_session([&](Session& session) {
        if (session.id() == case_->session) case_->forced = server_.device().end_work(session, kTimeout);
    });
    if (case_->forced)
        return server_.note(fmt::format(
            "{}: the device ends its tenant's work, and other programs are left alone", case_->kernel));
    if (server_.standby_comes() && !server_.takes_over() && !case_->awaits_standby) {
        case_->awaits_standby = true;
        case_->until = Clock::now() + kStandbyComes;
        return server_.note(
            fmt::format("{}: there is no standby that other programs could go on in yet; it is "
                        "waited for, {} s at most",
                        case_->kernel, kStandbyComes / 1s));
    }
    case_->forced = true;
    server_.give_up_context(case_->session, fmt::format("CUDA_ERROR_LAUNCH_TIMEOUT ({}): {}",
                                                        static_cast<int>(kTimeout), case_->kernel));
}

}  // namespace smt::runtime::server
