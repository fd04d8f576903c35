// The beginning and the end of a session: handshake and teardown.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "opcodes.gen.h"
#include "runtime/dispatch/quiesce.h"
#include "runtime/protocol/object_id.h"
#include "runtime/protocol/packet.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/control_message.h"
#include "runtime/server/fatal.h"
#include "runtime/server/lane.h"
#include "runtime/server/memory/fence.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/printf.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/settings/read.h"

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;

constexpr auto kPoll = 5ms;          // teardown's polling interval for threads and work
constexpr auto kStuckAfter = 10s;    // then the session counts as stuck
constexpr auto kPlacePoll = 20ms;    // polling interval of a session without an address range
constexpr auto kPlaceTimeout = 10s;  // its limit: shorter than the client waits for the reply

// The first region of each attempt (AddressPlan).
constexpr int kRegionOfAttempt[protocol::kMappingAttempts] = {0, 0, 1, 1, 2, 3, 3, 4};

// While a message is answered.
class MessageMark {
public:
    explicit MessageMark(Marks* marks) : marks_(marks) {
        if (!marks_) return;
        marks_->control().begin(marks_->control().begun.load() + 1);
        marks_->changed();
    }
    ~MessageMark() {
        if (marks_) marks_->control().done();
    }
    MessageMark(const MessageMark&) = delete;
    MessageMark& operator=(const MessageMark&) = delete;

private:
    Marks* const marks_;
};

void set_timeout(int socket, long seconds) {
    timeval limit{seconds, 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

}  // namespace

schedule::Duration kernel_limit(const protocol::Hello& hello) {
    const bool service = hello.p99_us != 0 || hello.slowdown_thousandths != 0;
    const uint64_t own = hello.kernel_limit;
    const uint64_t all = service ? 0 : settings::number_of(settings::Id::kBestEffortKernel);
    const uint64_t most = settings::setting(settings::Id::kKernelLimit).takes.most;
    return std::chrono::seconds(std::min(own && all ? std::min(own, all) : own + all, most));
}

bool Session::serve() {
    device_.arrived(*this);
    bool apart = false;
    try {
        apart = device_.enter_thread(this) == CUDA_SUCCESS && live();
    } catch (const std::exception& error) {  // it cannot be destroyed, and is kept
        note(fmt::format("ended: {}; what it holds stays held until the server leaves", error.what()));
    }
    device_.left(*this);
    return apart;
}

// An exception here ends this session in the usual way.
void Session::answer_control_guarded() {
    try {
        answer_control();
    } catch (const std::exception& error) {
        end_because(fmt::format("its thread failed: {}", error.what()));
    }
}

void Session::answer_control() {
    ControlMessage message;
    while (next_message(message)) {
        const MessageMark mark(marks_.get());
        if (message.as<protocol::OpenLane>(protocol::ControlKind::kOpenLane)) {
            if (!answer_open_lane()) return;
        } else if (auto captured = message.as<protocol::Captured>(protocol::ControlKind::kCaptured)) {
            take_captured(message.file(), captured->bytes);
        } else if (auto shown = message.as<protocol::Descriptor>(protocol::ControlKind::kDescriptor)) {
            server_.sharing().watch(shown->token, id_, message.file());
        } else {
            return end_because("it sent a control message that is not one");
        }
    }
}

bool Session::live() {
    if (handshake()) return live_on(Begins::kHere);
    if (server_.fatal() != CUDA_SUCCESS) return false;
    leave_place();
    return true;
}

// Not if the context is lost: its program has nothing here yet, and greets the next server.
bool Session::tell_opened() {
    const protocol::Opened opened;
    return server_.fatal() == CUDA_SUCCESS && protocol::send_packet(socket_, &opened, sizeof opened);
}

bool Session::live_on(Begins where) {
    server_.add(*this);
    if (gate_.closed(LaneGate::kSuspended))
        note(fmt::format("it begins suspended, as tenant {} is: smt resume {}", tenant_, tenant_));
    follow_gate();
    write_journal(journal::Kind::kSessionOpened, program_);
    if (!reissued_.empty()) reissue();
    if (where == Begins::kElsewhere || tell_opened()) answer_control_guarded();
    teardown();
    {
        std::lock_guard lock(mutex_);
        if (end_.empty()) end_ = "its program ended";
    }
    for (const auto& [function, count] : unsupported_) {  // all lanes have ended
        if (!std::has_single_bit(count)) journal_unsupported(function, count);
    }
    write_journal(journal::Kind::kSessionClosed, end_);
    server_.remove(*this);
    if (server_.fatal() != CUDA_SUCCESS) return false;
    leave_place();
    return true;
}

bool Session::send_welcome(protocol::WelcomeStatus status, const std::string& why) {
    protocol::Welcome welcome;
    welcome.status = status;
    welcome.session = id_;
    welcome.table_hash = protocol::kTableHash;
    welcome.arena_base = arena_.base();
    welcome.device_base = device_base_;
    welcome.server_pid = getpid();
    std::strncpy(welcome.message, why.c_str(), sizeof welcome.message - 1);
    const int file = status == protocol::WelcomeStatus::kOk ? arena_.file() : -1;
    return protocol::send_packet(socket_, &welcome, sizeof welcome, file);
}

void Session::confine() {
    if (multiprocessors_ == 0) return;
    std::string why;
    dispatched_->places = server_.dispatcher().supplies().sm_sets().take(multiprocessors_, &why);
    if (dispatched_->places) {
        note(fmt::format("its kernels run on {} of {}; {} were asked for", dispatched_->places->text(),
                         device_.properties().multiprocessors, multiprocessors_));
    } else {
        note(fmt::format("its kernels are not confined to {} multiprocessors: {}", multiprocessors_, why));
    }
}

bool Session::handshake() {
    std::string error;
    auto refuse = [&](const std::string& why) {
        note("refused: " + why);
        send_welcome(protocol::WelcomeStatus::kRefused, why);
        return false;
    };
    if (!arena_.create(error)) return refuse(error);
    confine();
    if (CUresult status = streams_.open(); status != CUDA_SUCCESS) {
        if (is_fatal(status)) return server_.poison(status), false;
        return refuse(fmt::format("the driver makes no stream: error {}", static_cast<int>(status)));
    }
    set_timeout(socket_, 20);
    for (int attempt = 0; attempt < protocol::kMappingAttempts; ++attempt) {
        leave_place();
        if (!find_place(kRegionOfAttempt[attempt]))
            return refuse(
                fmt::format("no address range is free in the server: {} programs fit, as each needs {} GiB "
                            "of its addresses",
                            AddressPlan::places(), AddressPlan::kSlotBytes >> 30));
        protocol::Mapped mapped;
        if (!send_welcome(protocol::WelcomeStatus::kOk, "")) return false;
        ssize_t got = recv(socket_, &mapped, sizeof mapped, 0);
        if (got != sizeof mapped || mapped.kind != protocol::ControlKind::kMapped) return false;
        if (!mapped.ok) continue;
        set_timeout(socket_, 0);
        open_status_ = open();
        if (is_fatal(open_status_)) return server_.poison(open_status_), false;
        server_.dispatcher().enter(dispatched_);
        return true;
    }
    return refuse("the program can map none of the address ranges the server offers");
}

// Many programs that start at once may find all slots taken. Then a session waits for others to leave.
bool Session::find_place(int first_region) {
    auto started = std::chrono::steady_clock::now();
    char byte;
    do {
        // A fence's window is one range.
        const int places = wants_fence() ? AddressPlan::kRegions : 2 * AddressPlan::kRegions;
        for (int i = 0; i < places; ++i) {
            if (place((first_region + i) % AddressPlan::kRegions, i < AddressPlan::kRegions)) return true;
        }
        std::this_thread::sleep_for(kPlacePoll);
        if (recv(socket_, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0) return false;  // client is gone
    } while (std::chrono::steady_clock::now() - started < kPlaceTimeout);
    return false;
}

// `exact`: the device range directly follows the arena. Else, for a driver that ignores hints, the driver
// chooses its address.
bool Session::place(int region, bool exact) {
    AddressPlan& plan = server_.addresses();
    int& next = next_slot_[exact ? 0 : 1][region];
    while ((slot_ = plan.take(region, next)) >= 0) {
        next = slot_ + 1;
        region_ = region;
        uint64_t base = AddressPlan::base(region, slot_);
        CUdeviceptr got = 0;
        CUdeviceptr wanted = exact ? base + protocol::kArenaBytes : 0;
        if (arena_.map(base)) {
            CUresult status = driver().cuMemAddressReserve(&got, protocol::kDeviceRangeBytes,
                                                           protocol::kRangeAlignment, wanted, 0);
            if (status == CUDA_SUCCESS && (got == wanted || !exact)) {
                device_base_ = got;
                return true;
            }
            if (status == CUDA_SUCCESS) driver().cuMemAddressFree(got, protocol::kDeviceRangeBytes);
        }
        plan.give(region, slot_);
    }
    return false;
}

void Session::leave_place() {
    if (device_base_) device_.forgotten(device_base_, protocol::kDeviceRangeBytes);
    if (device_base_) driver().cuMemAddressFree(device_base_, protocol::kDeviceRangeBytes);
    device_base_ = 0;
    if (arena_.base()) {
        device_.forgotten(arena_.base(), protocol::kArenaBytes);
        std::optional<dispatch::Quiesce> others;
        if (arena_.pinned())
            others.emplace(server_.dispatcher(), *dispatched_, dispatch::Quiesce::For::kFree);
        arena_.unmap();
    }
    if (slot_ >= 0) server_.addresses().give(region_, slot_);
    slot_ = -1;
}

CUresult Session::open() {
    CUresult status = open_fence();
    if (status != CUDA_SUCCESS) {
        note(fmt::format("its fence cannot be made: error {}", static_cast<int>(status)));
        return status;
    }
    status = arena_.register_words();
    if (status != CUDA_SUCCESS) {
        note(fmt::format("completion words cannot be registered: error {}", static_cast<int>(status)));
        return status;
    }
    handles_.number_after(protocol::first_number(arena_.base()));
    open_memory();
    return CUDA_SUCCESS;
}

void Session::open_memory() {
    auto memory = std::make_unique<TenantMemory>(device_, arena_, device_base_, protocol::kDeviceRangeBytes,
                                                 tenant_account_, server_.block_store(),
                                                 server_.swapper() ? host_account_ : nullptr, fence_.get());
    memory->tell_returned([this] { changed(); });  // other sessions that need room have it trimmed
    code_ = std::make_unique<CodeTable>(server_.dispatcher(), *dispatched_, *memory, journal(),
                                        server_.profiles(), handles_, server_.spare_images());
    std::lock_guard lock(mutex_);
    memory_ = std::move(memory);
    memory_open_ = true;
}

void Session::teardown() {
    closing_.store(true);
    server_.await_return(*this);
    captured_.notify_all();
    device_.leaving(*this);
    callbacks_.release();
    streams_.abandon();
    server_.dispatcher().exit(dispatched_);
    stop_lanes();
    server_.compiler().forget(id_);
    // The context is lost: the driver frees nothing any more, and the process exits soon.
    if (server_.fatal() != CUDA_SUCCESS) return device_printf().leave(*this);
    end_captures();
    await_work();
    device_printf().leave(*this);
    if (server_.fatal() != CUDA_SUCCESS) return;
    server_.dispatcher().ended(dispatched_);
    if (server_.measuring()) server_.measuring()->collect();
    server_.profiles().write_soon();
    free_objects();
    server_.sharing().ended(id_);
    std::unique_ptr<TenantMemory> memory;
    {
        std::lock_guard lock(mutex_);
        lanes_.clear();
        memory_open_ = false;
        memory = std::move(memory_);
    }
    streams_.close();  // until then the dispatcher reads their launches
    std::unique_ptr<CodeTable> code;
    {
        std::lock_guard lock(mutex_);
        code = std::move(code_);
    }
}

// A lane may be inside a driver call that waits for work behind a host function of the client that is gone.
// So release() is called repeatedly.
void Session::stop_lanes() {
    std::vector<std::shared_ptr<Lane>> lanes;
    {
        std::lock_guard lock(mutex_);
        lanes = lanes_;
    }
    auto started = std::chrono::steady_clock::now();
    for (const std::shared_ptr<Lane>& lane : lanes) {
        while (lane && !lane->ended()) {
            for (const std::shared_ptr<Lane>& each : lanes) {
                if (each) each->stop();
            }
            if (lane->ended()) break;
            std::this_thread::sleep_for(kPoll);
            callbacks_.release();
            streams_.abandon();
            device_.release_waits(*this);
            if (!stuck() && std::chrono::steady_clock::now() - started > kStuckAfter) {
                stuck_.store(true);
                note("its program is gone, but a call of it does not return");
            }
        }
        if (lane) lane->join();
    }
}

void Session::await_work() {
    auto started = std::chrono::steady_clock::now();
    while (streams_.query_all() == CUDA_ERROR_NOT_READY) {
        if (!stuck() && std::chrono::steady_clock::now() - started > kStuckAfter) {
            stuck_.store(true);
            note("its program is gone, but its work on the GPU does not end; what it holds stays held");
        }
        std::this_thread::sleep_for(stuck() ? 200ms : kPoll);
        callbacks_.release();
        streams_.abandon();
        device_.release_waits(*this);
    }
    stuck_.store(false);
}

}  // namespace smt::runtime::server
