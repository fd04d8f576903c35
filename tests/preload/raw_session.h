// A program's end of a session, spoken by a test itself: no client library, and no address of the server's.
#pragma once

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

namespace smt::tests {

using namespace protocol;

inline constexpr int kTimeoutMs = 60'000;

inline void require(bool condition, const char* text) {
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

inline int receive_welcome(int socket) {
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
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    require(header != nullptr, "the arena came with it");
    int file = -1;
    if (header) std::memcpy(&file, CMSG_DATA(header), sizeof file);
    return file;
}

inline int connect_to(const char* path) {
    const int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    require(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connected");
    return client;
}

inline Session open_session(const char* path) {
    Session session;
    session.socket = connect_to(path);
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

inline void publish(const Session& session, uint64_t tail) {
    session.header().tail.store(tail);
    session.header().server_asleep.store(0);
    syscall(SYS_futex, &session.header().server_asleep, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace smt::tests
