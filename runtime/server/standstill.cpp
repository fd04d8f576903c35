#include "runtime/server/standstill.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <utility>

#include "runtime/server/log.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenLooks = std::chrono::milliseconds(200);

int64_t seconds(StandstillRule::Duration time) { return time / std::chrono::seconds(1); }

}  // namespace

Standstill::Standstill(device::Device& device, std::function<std::string(uint32_t name)> name_of)
    : device_(device), name_of_(std::move(name_of)) {}

Standstill::~Standstill() {
    {
        std::lock_guard lock(mutex_);
        stops_ = true;
    }
    stopped_.notify_all();
    thread_.join();
}

Standstill::Calls::Calls(Standstill& standstill, Kind kind) : standstill_(standstill) {
    standstill_.place_.store(StandstillRule::place(++standstill_.places_, kind == kSlow));
}
Standstill::Calls::~Calls() { standstill_.place_.store(0); }

void Standstill::ends_by(End end) { end_ = std::move(end); }

void Standstill::add(Session& session) {
    std::lock_guard lock(mutex_);
    sessions_[session.id()] = &session;
    if (std::exchange(runs_, true)) return;
    const std::string why = thread_.serve({"standstill", ""}, [this] { run(); });
    if (!why.empty()) runs_ = false, log_line("the driver is not watched: " + why);
}

void Standstill::remove(const Session& session) {
    std::lock_guard lock(mutex_);
    sessions_.erase(session.id());
}

void Standstill::run() {
    StandstillRule rule;
    Clock::time_point last = Clock::now();
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, kBetweenLooks, [this] { return stops_; })) {
        lock.unlock();
        const Clock::time_point now = Clock::now();
        const auto verdict = rule.look(place_.load(), now - std::exchange(last, now),
                                       [this] { return device_.watched_launches(); });
        lock.lock();
        if (!verdict) continue;
        try {
            tell(*verdict);
        } catch (const std::exception& error) {
            log_line(error.what());
        }
        kill(getpid(), SIGKILL);
    }
}

// With mutex_: no session goes. What is said last is what programs print that the standby does not know.
void Standstill::tell(const StandstillRule::Verdict& verdict) {
    const device::LaunchOf& launch = verdict.launch.launch;
    const auto found = sessions_.find(launch.session);
    Session* const session = found == sessions_.end() ? nullptr : found->second;
    const std::string why = fmt::format(
        "kernel {} of {} has not ended, its limit is {} s (SMT_KERNEL_LIMIT), and the server's main "
        "thread has not come out of its calls for {} s",
        name_of_(launch.name), session ? session->called() : "a program that has left", seconds(launch.limit),
        seconds(verdict.stood));
    if (session)
        session->lose(CUDA_ERROR_LAUNCH_TIMEOUT,
                      fmt::format("CUDA_ERROR_LAUNCH_TIMEOUT ({}): {}",
                                  static_cast<int>(CUDA_ERROR_LAUNCH_TIMEOUT), why));
    if (end_) end_(why, verdict.sure && session ? session->tenant() : "");
    log_line("this process ends: " + why);
}

}  // namespace smt::runtime::server
