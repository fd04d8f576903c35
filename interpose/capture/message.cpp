#include "interpose/capture/message.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "interpose/process/session.h"
#include "interpose/process/state.h"
#include "runtime/protocol/packet.h"

namespace smt::interpose::capture {

using protocol::Captured;

namespace {

constinit pthread_mutex_t message_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Bytes waiting[kMostWaiting]{};
constinit int waiting_count = 0;
constinit uint64_t waiting_bytes = 0;
constinit PerSession<std::atomic<uint32_t>> sent;

bool write_all(int file, const char* data, uint64_t bytes) {
    while (bytes) {
        ssize_t written = write(file, data, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        data += written;
        bytes -= static_cast<uint64_t>(written);
    }
    return true;
}

bool send_captured(const Session& session, int file, uint64_t bytes) {
    Captured packet;
    packet.bytes = bytes;
    return protocol::send_packet(session.control_socket(), &packet, sizeof packet, file, MSG_DONTWAIT);
}

// To every server that there is a session with. One that is too busy to take it does not get it.
void send_locked(Bytes& message) {
    int file = memfd_create("smt-captured", MFD_CLOEXEC);
    const bool written = file >= 0 && write_all(file, message.data, message.size);
    const uint32_t count = session_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; written && i < count; ++i)
        if (send_captured(sessions[i], file, message.size))
            sent.of(sessions[i]).fetch_add(1, std::memory_order_release);
    if (file >= 0) close(file);
    message.release();
}

}  // namespace

void show(Bytes& message) {
    pthread_mutex_lock(&message_lock);
    const State now = state();
    if (now == State::kRemote) {
        send_locked(message);
    } else if ((now == State::kFresh || now == State::kLocal) && waiting_count < kMostWaiting &&
               message.size <= protocol::kMostCapturedBytes - waiting_bytes) {
        waiting_bytes += message.size;
        waiting[waiting_count++] = message;
    } else {
        message.release();
    }
    pthread_mutex_unlock(&message_lock);
}

void show_waiting() {
    pthread_mutex_lock(&message_lock);
    for (int i = 0; i < waiting_count; ++i) send_locked(waiting[i]);
    waiting_count = 0;
    waiting_bytes = 0;
    pthread_mutex_unlock(&message_lock);
}

uint32_t shown() { return sent.here().load(std::memory_order_acquire); }

void forget_messages_in_child() {
    message_lock = PTHREAD_MUTEX_INITIALIZER;
    waiting_count = 0;
    waiting_bytes = 0;
}

}  // namespace smt::interpose::capture
