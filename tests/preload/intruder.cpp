// Speaks the protocol itself and breaks its rules, each once, in a session of its own: the server must
// end that session, and nothing else. intruder SOCKET
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "opcodes.gen.h"
#include "runtime/protocol/handshake.h"
#include "runtime/protocol/layout.h"
#include "runtime/protocol/record.h"

using namespace smt::protocol;

namespace {

constexpr int kTimeoutMs = 60'000;

void require(bool condition, const char* text) {
    if (condition) return;
    std::fprintf(stderr, "not true: %s\n", text);
    std::exit(1);
}

// What a session is given, and where its first lane lies.
struct Session {
    int socket = -1;
    char* lane = nullptr;
    LaneHeader& header() const { return *reinterpret_cast<LaneHeader*>(lane); }
    RecordHeader& record() const { return *reinterpret_cast<RecordHeader*>(lane + kLaneRingOffset); }
};

int receive_welcome(int socket) {
    Welcome welcome;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec part{&welcome, sizeof welcome};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    require(recvmsg(socket, &message, 0) == sizeof welcome, "a welcome came");
    require(welcome.status == WelcomeStatus::kOk, "the server takes the program");
    int file = -1;
    std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    return file;
}

Session open_session(const char* path) {
    Session session;
    session.socket = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    require(connect(session.socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connected");
    Hello hello;
    hello.table_hash = kTableHash;
    hello.pid = getpid();
    std::strcpy(hello.tenant, "intruder");
    require(send(session.socket, &hello, sizeof hello, 0) == sizeof hello, "greeted");
    const int file = receive_welcome(session.socket);
    Mapped mapped;
    mapped.ok = 1;  // not at the server's address, which a client that sends no pointer does not need
    require(send(session.socket, &mapped, sizeof mapped, 0) == sizeof mapped, "mapped");
    Opened last;
    require(recv(session.socket, &last, sizeof last, 0) == sizeof last, "the session is there");
    const OpenLane request;
    LaneOpened opened;
    require(send(session.socket, &request, sizeof request, 0) == sizeof request, "asked for a lane");
    require(recv(session.socket, &opened, sizeof opened, 0) == sizeof opened, "a lane came");
    void* lane = mmap(nullptr, kLaneBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                      static_cast<off_t>(opened.offset));
    require(lane != MAP_FAILED, "the lane is mapped");
    close(file);
    session.lane = static_cast<char*>(lane);
    return session;
}

void await_end(Session& session) {
    pollfd ended{session.socket, POLLIN, 0};
    Farewell farewell;
    require(poll(&ended, 1, kTimeoutMs) == 1, "the server reacts");
    require(recv(session.socket, &farewell, sizeof farewell, 0) == sizeof farewell &&
                farewell.kind == ControlKind::kFarewell,
            "it says why");
    require(farewell.message[0] != 0 && recv(session.socket, &farewell, sizeof farewell, 0) == 0,
            "it ends the session");
    close(session.socket);
    munmap(session.lane, kLaneBytes);
}

void publish(const Session& session, uint64_t tail) {
    session.header().tail.store(tail);
    session.header().server_asleep.store(0);
    syscall(SYS_futex, &session.header().server_asleep, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void garbage(const Session& session) {
    for (uint64_t i = 0; i < kRingBytes; ++i)
        session.lane[kLaneRingOffset + i] = static_cast<char>(rand() | 1);
    publish(session, kRingBytes);
}
void crooked_tail(const Session& session) {
    session.record() = {32, static_cast<uint16_t>(Op::kMemInfo), 0, 0, 0};
    publish(session, 24);
}
void far_tail(const Session& session) { publish(session, kRingBytes + 16); }
void negative_tail(const Session& session) { publish(session, ~0ull - 15); }
void empty_record(const Session& session) { publish(session, 64); }
void half_record(const Session& session) {
    session.record() = {4096, static_cast<uint16_t>(Op::kMemInfo), 0, 0, 0};
    publish(session, 64);
}
void long_payload(const Session& session) {
    session.record() = {32, static_cast<uint16_t>(Op::kMemInfo), 0, 0, 0x7fffffff};
    publish(session, 32);
}
void long_record(const Session& session) {
    session.record() = {kMaxRecordBytes + 16, static_cast<uint16_t>(Op::kMemInfo), 0, 0, 0};
    publish(session, kMaxRecordBytes + 16);
}
void false_message(const Session& session) {
    const char text[] = "no control message at all";
    require(send(session.socket, text, sizeof text, 0) == sizeof text, "sent");
}

}  // namespace

int main(int, char** arguments) {
    for (auto* intrude : {garbage, crooked_tail, far_tail, negative_tail, empty_record, half_record,
                          long_payload, long_record, false_message}) {
        Session session = open_session(arguments[1]);
        intrude(session);
        await_end(session);
    }
    std::puts("every session was ended");
}
