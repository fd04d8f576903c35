#include "runtime/server/printf.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "runtime/device/held_up.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

namespace {

// Polling intervals of the wait for the turn.
constexpr std::chrono::nanoseconds kShortestRest = std::chrono::microseconds(20);
constexpr std::chrono::nanoseconds kLongestRest = std::chrono::milliseconds(1);

}  // namespace

DevicePrintf::~DevicePrintf() {
    if (file_ >= 0) close(file_);
}

bool DevicePrintf::redirect_stdout() {
    file_ = memfd_create("smt-device-printf", MFD_CLOEXEC);
    if (file_ < 0 || dup2(file_, STDOUT_FILENO) < 0) return false;
    return fcntl(STDOUT_FILENO, F_SETFL, O_APPEND) == 0;
}

// The printing work of the session that holds the turn. Any thread.
class DevicePrintf::Turn {
public:
    explicit Turn(const DriverApi& driver) : driver_(driver) {}
    ~Turn() {
        for (const auto& [stream, event] : events_) driver_.cuEventDestroy_v2(event);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    void begin_launch() { ++launching_; }
    // If no event can be made the launch is not waited for.
    void end_launch(CUstream stream, CUresult status) {
        {
            std::lock_guard lock(mutex_);
            CUevent& event = events_[stream];
            if (!event && status == CUDA_SUCCESS &&
                driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
                event = nullptr;
            if (event && status == CUDA_SUCCESS) driver_.cuEventRecord(event, stream);
            if (!event) events_.erase(stream);
        }
        --launching_;
    }
    // Whether all of it has completed, and the driver has printed its output.
    bool is_over() {
        if (launching_ != 0) return false;
        std::lock_guard lock(mutex_);
        std::erase_if(events_, [this](const auto& each) {
            if (driver_.cuEventQuery(each.second) == CUDA_ERROR_NOT_READY) return false;
            driver_.cuEventSynchronize(each.second);  // prints pending output
            driver_.cuEventDestroy_v2(each.second);
            return true;
        });
        return events_.empty() && launching_ == 0;
    }

private:
    const DriverApi& driver_;
    std::atomic<int> launching_{0};  // threads between begin_launch() and end_launch()
    std::mutex mutex_;
    std::unordered_map<CUstream, CUevent> events_;  // behind the last launch of each stream
};

CUresult DevicePrintf::launch(Session& session, CUstream stream, const std::function<CUresult()>& launch) {
    const std::shared_ptr<Turn> turn = await_turn(session);
    if (!turn) return CUDA_ERROR_DEINITIALIZED;
    const CUresult status = launch();
    turn->end_launch(stream, status);
    return status;
}

// Returns the turn with the launch begun in it. Null: the session ends.
std::shared_ptr<DevicePrintf::Turn> DevicePrintf::await_turn(Session& session) {
    std::optional<device::HeldUp> held_up;
    std::chrono::nanoseconds began{}, rest = kShortestRest;
    std::shared_ptr<Turn> mine, turn;  // destroyed without the lock
    Lock lock(mutex_);
    const uint64_t number = ++numbers_;
    queue_.push_back(number);
    while (!mine && !session.closing()) {
        Session* const before = holder_.load(std::memory_order_relaxed);
        if (queue_.front() == number && (!before || before == &session)) {
            mine = hand_over(session);
            break;
        }
        const std::string by =
            before && before != &session ? "device printf of " + before->tenant() : "its turn to print";
        held_up ? held_up->change(by) : static_cast<void>(held_up.emplace(session.id(), by));
        if (queue_.front() == number) {
            turn = turn_;
            lock.unlock();
            const bool over = turn->is_over();
            lock.lock();
            if (turn != turn_) continue;  // the holder's session has ended
            const bool patient = held_up->lasted() - began <= patience_;
            if (over || !patient) mine = hand_over(session);
            if (!over && mine)
                session.note("prints although kernels of " + before->tenant() +
                             " that print have not ended: lines may be mixed up");
        } else {
            began = held_up->lasted();
        }
        if (mine) break;
        lock.unlock();
        std::this_thread::sleep_for(rest);
        rest = std::min(2 * rest, kLongestRest);
        lock.lock();
    }
    std::erase(queue_, number);
    return mine;
}

std::shared_ptr<DevicePrintf::Turn> DevicePrintf::hand_over(Session& session) {
    Session* const before = holder_.load(std::memory_order_relaxed);
    if (before != &session) {
        if (before) collect_locked(*before);
        turn_ = std::make_shared<Turn>(session.driver());
        holder_.store(&session, std::memory_order_release);
        session.arena().header().printing.store(1, std::memory_order_release);
    }
    turn_->begin_launch();
    return turn_;
}

void DevicePrintf::leave(Session& session) {
    std::shared_ptr<Turn> turn;  // destroyed without the lock
    Lock lock(mutex_);
    if (holder_.load(std::memory_order_relaxed) != &session) return;
    collect_locked(session);
    holder_.store(nullptr, std::memory_order_release);
    turn = std::move(turn_);
    lock.unlock();
}

void DevicePrintf::collect_from_stdout(Session& session) {
    std::lock_guard lock(mutex_);
    if (holder_.load(std::memory_order_relaxed) == &session) collect_locked(session);
}

// The driver prints through the process's stdout. Another session's synchronisation may be printing the
// holder's lines at this moment, so the file is never truncated: the part that was read becomes a hole.
void DevicePrintf::collect_locked(Session& session) {
    std::fflush(stdout);
    struct stat file;
    if (file_ < 0 || fstat(file_, &file) != 0) return;
    uint64_t end = static_cast<uint64_t>(file.st_size);
    if (end <= read_) return;
    char buffer[16 << 10];
    uint64_t from = read_;
    while (read_ < end) {
        size_t wanted = end - read_ < sizeof buffer ? end - read_ : sizeof buffer;
        ssize_t got = pread(file_, buffer, wanted, static_cast<off_t>(read_));
        if (got <= 0) break;
        session.add_output(buffer, static_cast<size_t>(got));
        read_ += static_cast<uint64_t>(got);
    }
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
              static_cast<off_t>(read_ - from));
}

}  // namespace smt::runtime::server
