#include "interpose/transport/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "interpose/transport/identity.h"
#include "interpose/transport/server_start.h"
#include "interpose/transport/waiting.h"
#include "opcodes.gen.h"
#include "runtime/protocol/handshake.h"
#include "runtime/protocol/packet.h"
#include "runtime/protocol/server_key.h"
#include "runtime/settings/read.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace smt::interpose {

namespace {

using namespace protocol;

enum class Shake { kOk, kRefused, kLeaving };  // kLeaving: the server hung up before its answer

// Until something comes, or the end.
bool await_packet(int socket_fd, uint64_t deadline) {
    while (true) {
        pollfd waiting{socket_fd, POLLIN, 0};
        uint64_t now = now_nanoseconds();
        int left = now < deadline ? static_cast<int>((deadline - now) / 1'000'000) + 1 : 0;
        int ready = poll(&waiting, 1, left);
        if (ready > 0) return true;
        if (ready == 0 || errno != EINTR) return false;
    }
}

// Whether the next packet, which stays there, is of that kind.
bool next_is(int socket_fd, ControlKind kind, uint64_t deadline) {
    ControlKind next{};
    if (!await_packet(socket_fd, deadline)) return false;
    ssize_t got;
    do got = recv(socket_fd, &next, sizeof next, MSG_PEEK);
    while (got < 0 && errno == EINTR);
    return got == static_cast<ssize_t>(sizeof next) && next == kind;
}

// One packet of exactly `bytes`, and the first descriptor that came, if any, in *descriptor.
bool receive_by(uint64_t deadline, int socket_fd, void* packet, size_t bytes, int* descriptor) {
    if (!await_packet(socket_fd, deadline)) return false;
    int received = -1;
    const ssize_t got = receive_packet(socket_fd, packet, bytes, &received);
    if (descriptor && *descriptor < 0)
        *descriptor = received;
    else if (received >= 0)
        close(received);
    return got == static_cast<ssize_t>(bytes);
}

int32_t priority() {
    int32_t value = 0;
    settings::read_priority(settings::text_of(settings::Id::kPriority), &value);
    return value;
}

// In thousandths; 0: not set.
uint32_t weight() {
    uint32_t thousandths = 0;
    settings::read_weight(settings::text_of(settings::Id::kWeight), &thousandths);
    return thousandths;
}

// In us; 0: not set.
uint64_t p99() {
    uint64_t us = 0;
    settings::read_time(settings::text_of(settings::Id::kP99), &us);
    return us;
}

// In thousandths; 0: not set.
uint32_t slowdown() {
    uint32_t thousandths = 0;
    settings::read_slowdown(settings::text_of(settings::Id::kSlowdown), &thousandths);
    return thousandths;
}

Hello hello() {
    Hello message;
    message.table_hash = kTableHash;
    message.pid = getpid();
    using settings::Id, settings::number_of;
    message.memory_limit = number_of(Id::kMemoryLimit);
    message.memory_wait_ms = static_cast<uint32_t>(number_of(Id::kMemoryWait)) * 1000;
    message.priority = priority();
    message.weight_thousandths = weight();
    message.p99_us = p99();
    message.slowdown_thousandths = slowdown();
    message.multiprocessors = static_cast<uint32_t>(number_of(Id::kMultiprocessors));
    message.fenced = protocol::wants_fence();
    message.quarantine = protocol::wants_quarantine();
    message.kernel_limit = static_cast<uint32_t>(number_of(Id::kKernelLimit));
    message.stress = static_cast<uint32_t>(number_of(Id::kStress));
    const char* name = settings::c_text_of(Id::kTenant);
    if (!name) name = program_invocation_short_name;
    strncpy(message.tenant, name, sizeof message.tenant - 1);
    strncpy(message.program, program_invocation_short_name, sizeof message.program - 1);
    name_family(message.family);
    return message;
}

// `address` exactly, or nullptr. Kernels before 4.17 take the flag for a hint, hence the comparison.
char* map_at(uint64_t address, uint64_t bytes, int protection, int flags, int descriptor) {
    void* wanted = reinterpret_cast<void*>(address);
    void* got = mmap(wanted, bytes, protection, flags | MAP_NORESERVE | MAP_FIXED_NOREPLACE, descriptor, 0);
    if (got == MAP_FAILED) return nullptr;
    if (got == wanted) return static_cast<char*>(got);
    munmap(got, bytes);
    return nullptr;
}

bool map_session(const Welcome& welcome, int descriptor, SessionOpened& opened) {
    opened.arena = map_at(welcome.arena_base, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor);
    if (!opened.arena) return false;
    opened.device_range =
        map_at(welcome.device_base, kDeviceRangeBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (opened.device_range) {
        madvise(opened.arena, kArenaBytes, MADV_DONTDUMP);
        return true;
    }
    munmap(opened.arena, kArenaBytes);
    opened.arena = nullptr;
    return false;
}

void unmap_session(SessionOpened& opened) {
    munmap(opened.arena, kArenaBytes);
    munmap(opened.device_range, kDeviceRangeBytes);
    opened.arena = opened.device_range = nullptr;
}

// The last step: the session is there.
bool await_opened(int socket_fd, uint64_t deadline) {
    Opened last{};
    return next_is(socket_fd, ControlKind::kOpened, deadline) &&
           receive_by(deadline, socket_fd, &last, sizeof last, nullptr);
}

Shake shake_hands(int socket_fd, uint64_t deadline, SessionOpened& opened, SessionFailure& failure) {
    Hello greeting = hello();
    if (!send_packet(socket_fd, &greeting, sizeof greeting)) return Shake::kLeaving;
    int arena_fd = -1;
    Shake result = Shake::kRefused;
    explain(failure, "the server's address ranges do not fit into this process");
    for (int attempt = 0; attempt < kMappingAttempts; ++attempt) {
        Welcome welcome{};
        if (!receive_by(deadline, socket_fd, &welcome, sizeof welcome, &arena_fd) ||
            welcome.kind != ControlKind::kWelcome) {
            explain(failure, "the server hung up");
            result = Shake::kLeaving;
            break;
        }
        if (welcome.status != WelcomeStatus::kOk) {
            welcome.message[sizeof welcome.message - 1] = 0;
            explain(failure, "%s", welcome.message[0] ? welcome.message : "the server refused");
            break;
        }
        Mapped answer;
        answer.ok = map_session(welcome, arena_fd, opened);
        if (!send_packet(socket_fd, &answer, sizeof answer)) {
            if (answer.ok) unmap_session(opened);
            explain(failure, "the server hung up");
            result = Shake::kLeaving;
            break;
        }
        if (!answer.ok) continue;
        opened.server_pid = welcome.server_pid;
        result = await_opened(socket_fd, deadline) ? Shake::kOk : Shake::kLeaving;
        if (result == Shake::kLeaving) unmap_session(opened), explain(failure, "the server hung up");
        break;
    }
    if (arena_fd >= 0) close(arena_fd);
    return result;
}

}  // namespace

bool open_session(const char* key, const char* visible, SessionOpened& opened, SessionFailure& failure) {
    // A default in the place of a limit that was misspelled would go unseen.
    if (settings::find_problem(settings::kClient, failure.text, sizeof failure.text)) return false;
    uint64_t deadline = now_nanoseconds() + uint64_t{kStartSeconds} * 1'000'000'000;
    while (true) {
        int socket_fd = reach_server(key, visible, deadline, &opened.is_system, failure);
        if (socket_fd < 0) return false;
        // A server that took long to start has its time for this all the same.
        const uint64_t answer_by = now_nanoseconds() + uint64_t{kStartSeconds} * 1'000'000'000;
        Shake result = shake_hands(socket_fd, answer_by, opened, failure);
        if (result == Shake::kOk) return opened.socket = socket_fd, true;
        close(socket_fd);
        // A server that was just leaving: the next one will answer.
        if (result == Shake::kRefused || now_nanoseconds() > deadline) return false;
        usleep(10'000);
    }
}

CUresult request_lane(Session& session, int32_t thread, uint32_t& index, uint64_t& offset) {
    OpenLane request;
    request.thread = thread;
    LaneOpened answer{};
    uint64_t deadline = now_nanoseconds() + uint64_t{kStartSeconds} * 1'000'000'000;
    int socket_fd = session.control_socket();
    // What comes in its place is a farewell, which is left for Session::server_lives().
    if (!send_packet(socket_fd, &request, sizeof request) ||
        !next_is(socket_fd, ControlKind::kLaneOpened, deadline) ||
        !receive_by(deadline, socket_fd, &answer, sizeof answer, nullptr)) {
        return session.server_lives() ? CUDA_ERROR_UNKNOWN : session.sticky_error();
    }
    index = answer.lane;
    offset = answer.offset;
    return static_cast<CUresult>(answer.status);
}

}  // namespace smt::interpose
