#include "tests/wire/server.h"

#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "opcodes.gen.h"
#include "runtime/protocol/packet.h"
#include "runtime/settings/config.h"

// The same as in tests/tsan.supp.
#ifdef __SANITIZE_THREAD__
extern "C" const char* __tsan_default_suppressions() { return "race:_dl_deallocate_tls\n"; }
#endif

namespace smt::tests {

using namespace protocol;

namespace {

// libFuzzer's alarm interrupts calls.
template <typename Call>
ssize_t uninterrupted(Call call) {
    ssize_t result;
    do result = call();
    while (result < 0 && errno == EINTR);
    return result;
}

// Without signals, as smtd's threads are.
template <typename Work>
std::thread start_thread(Work work) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread started(work);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

}  // namespace

void give_up(const char* text) {
    std::fprintf(stderr, "did not become true: %s\n", text);
    std::abort();  // the test, or the fuzz target's input, is told
}

TestServer& TestServer::get() {
    static TestServer* server = new TestServer;  // never destroyed: the fake's threads outlive main()
    return *server;
}

TestServer::TestServer() {
    settings::set(settings::Id::kDriver, SMT_TEST_DRIVER);
    settings::set(settings::Id::kCacheSize, "0");
    settings::set(settings::Id::kCompiler, "/nowhere/smt-compile");
    settings::set(settings::Id::kProfiles, "none");
    setenv("SMT_FAKE_MEMORY", "67108864", 0);
    setenv("SMT_FAKE_STRICT", "1", 1);
    std::string error;
    bool found = false;
    device_ = runtime::device::open_cuda("device", "", &found, error);
    if (!device_) give_up(error.c_str());
    journal_ = std::make_unique<runtime::journal::Writer>("/dev/null/none");  // mute
    server_ = std::make_unique<runtime::server::Server>(*device_, *journal_, device_printf_,
                                                        runtime::schedule::make_policy("priority"),
                                                        runtime::dispatch::Settings{});
}

void TestLane::post(uint16_t op, const void* payload, size_t bytes, uint16_t flags, uint32_t sequence) {
    const size_t whole =
        (sizeof(RecordHeader) + bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
    const uint64_t at = position_ % kRingBytes;
    if (at + whole > kRingBytes) {
        await_reached(position_);
        const RecordHeader pad{static_cast<uint32_t>(kRingBytes - at), static_cast<uint16_t>(Op::kPad), 0, 0,
                               0};
        std::memcpy(ring() + at, &pad, sizeof pad);
        publish(position_ + (kRingBytes - at));
    }
    await([&] { return position_ + whole - header().head.load(std::memory_order_acquire) <= kRingBytes; },
          "the ring has room");
    const RecordHeader record{static_cast<uint32_t>(whole), op, flags, sequence,
                              static_cast<uint32_t>(bytes)};
    char* to = ring() + position_ % kRingBytes;
    std::memcpy(to, &record, sizeof record);
    if (bytes) std::memcpy(to + sizeof record, payload, bytes);
    publish(position_ + whole);
}

void TestLane::publish(uint64_t tail) {
    position_ = tail;
    header().tail.store(tail);
    if (header().server_asleep.exchange(0) != 0) {
        syscall(SYS_futex, &header().server_asleep, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
}

Reply TestLane::call(uint16_t op, const void* payload, size_t bytes) {
    post(op, payload, bytes, kWantsReply, ++sequence_);
    await([&] { return header().reply_seq.load(std::memory_order_acquire) == sequence_; }, "the reply came");
    Reply reply;
    reply.status = static_cast<CUresult>(header().reply_status);
    reply.bytes = header().reply_bytes;
    reply.words.resize(reply.bytes / 8 + 1);
    std::memcpy(reply.words.data(), reinterpret_cast<char*>(address_ + kLaneReplyOffset), reply.bytes);
    return reply;
}

void TestLane::await_reached(uint64_t position) const {
    await([&] { return header().head.load(std::memory_order_acquire) >= position; }, "the lane got there");
}

TestSession::TestSession(uint64_t memory_limit, const char* tenant) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) give_up("a socket pair");
    socket_ = pair[0];
    server_socket_ = pair[1];
    Hello hello;
    hello.memory_limit = memory_limit;
    std::strncpy(hello.tenant, tenant, sizeof hello.tenant - 1);
    runtime::server::Server& server = TestServer::get().server();
    session_ =
        std::make_unique<runtime::server::Session>(server, server.next_session(), server_socket_, hello);
    serving_ = start_thread([this] {
        TestServer::get().device().enter_thread();
        session_->serve();
        shutdown(server_socket_, SHUT_RDWR);
    });
    Welcome welcome;
    if (uninterrupted([&] { return recv(socket_, &welcome, sizeof welcome, 0); }) != sizeof welcome ||
        welcome.status != WelcomeStatus::kOk) {
        give_up(welcome.message);
    }
    Mapped mapped;
    mapped.ok = 1;
    base_ = welcome.arena_base;
    device_base_ = welcome.device_base;
    Opened last;
    if (send(socket_, &mapped, sizeof mapped, MSG_NOSIGNAL) != sizeof mapped ||
        uninterrupted([&] { return recv(socket_, &last, sizeof last, 0); }) != sizeof last)
        give_up("the session is there");
    callbacks_ = start_thread([this] { answer_callbacks(); });
}

TestSession::~TestSession() { leave(); }

void TestSession::leave() {
    if (socket_ < 0) return;
    leaving_.store(true);
    callbacks_.join();  // it looks into the arena, which goes away
    close(socket_);
    socket_ = -1;
    serving_.join();
    session_.reset();
    close(server_socket_);
}

TestLane TestSession::open_lane() {
    const OpenLane request;
    LaneOpened opened;
    if (send(socket_, &request, sizeof request, MSG_NOSIGNAL) != sizeof request ||
        uninterrupted([&] { return recv(socket_, &opened, sizeof opened, 0); }) != sizeof opened) {
        give_up("the server answers a client that opens a lane");
    }
    if (opened.status != CUDA_SUCCESS)
        give_up(("a lane is opened, and not error " + std::to_string(opened.status)).c_str());
    return TestLane(base_ + opened.offset, opened.lane);
}

void TestSession::send_control(const void* packet, size_t bytes, int file) {
    if (!send_packet(socket_, packet, bytes, file)) give_up("the server listens");
}

bool TestSession::hung_up() const {
    pollfd ended{socket_, POLLRDHUP, 0};  // a farewell may lie before the end
    return poll(&ended, 1, 0) == 1;
}

void TestSession::await_end() const {
    await([&] { return hung_up(); }, "the server ended the session");
}

void TestSession::answer_callbacks() {
    // The server unmaps the arena when it has ended the session by itself: so our own view of the file.
    const int file = session_->arena().file();
    void* view = mmap(nullptr, kArenaHeapOffset, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    auto& header = *static_cast<SessionHeader*>(view);
    auto* words = reinterpret_cast<std::atomic<uint64_t>*>(static_cast<char*>(view) + kWordsOffset);
    uint32_t head = 0;
    while (!leaving_.load()) {
        for (; head != header.callback_tail.load(std::memory_order_acquire); ++head) {
            const CallbackSlot slot = header.callbacks[head % kCallbackSlots];
            if (slot.done_word < kEventWords + kServerWords) words[slot.done_word].store(slot.done_value);
            header.callback_head.store(head + 1, std::memory_order_release);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    munmap(view, kArenaHeapOffset);
}

}  // namespace smt::tests
