#include "runtime/server/takeover/packet.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/keeper/channel.h"

namespace smt::runtime::server {

namespace {

constexpr int kPatienceMs = 2000;  // with an end that does not read

}  // namespace

Packet make_packet(PacketKind kind, uint64_t value, const std::string& text) {
    Packet made;
    made.kind = kind;
    made.value = value;
    std::strncpy(made.text, text.c_str(), sizeof made.text - 1);
    return made;
}

bool put_packet(int socket, const Packet& packet, const std::vector<int>& files) {
    while (!keeper::send_packet(socket, &packet, sizeof packet, files, false)) {
        pollfd room{socket, POLLOUT, 0};
        if ((errno != EAGAIN && errno != EWOULDBLOCK) || poll(&room, 1, kPatienceMs) <= 0) return false;
    }
    return true;
}

void put_leave(int socket, int pid) {
    if (!put_packet(socket, make_packet(PacketKind::kLeave)) && pid > 0) kill(pid, SIGKILL);
}

bool take_any_packet(int socket, Packet* packet, std::vector<int>* files, int milliseconds) {
    pollfd watched{socket, POLLIN, 0};
    int ready = 0;
    do ready = poll(&watched, 1, milliseconds);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0) return false;
    if (keeper::receive_packet(socket, packet, sizeof *packet, files) == sizeof *packet &&
        packet->magic == Packet::kMagic) {
        packet->text[sizeof packet->text - 1] = 0;
        return true;
    }
    keeper::close_all(*files);
    files->clear();
    return false;
}

bool take_packet(int socket, PacketKind kind, size_t count, Packet* packet, std::vector<int>* files,
                 int milliseconds) {
    if (!take_any_packet(socket, packet, files, milliseconds)) return false;
    if (packet->kind == kind && files->size() == count) return true;
    keeper::close_all(*files);
    files->clear();
    return false;
}

int file_of(const std::string& bytes) {
    const int file = memfd_create("smt-state", MFD_CLOEXEC);
    if (file < 0) return -1;
    for (size_t at = 0; at < bytes.size();) {
        const ssize_t written = write(file, bytes.data() + at, bytes.size() - at);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return close(file), -1;
        at += static_cast<size_t>(written);
    }
    return file;
}

FileBytes::FileBytes(int file, uint64_t bytes) {
    struct stat facts{};
    const bool whole =
        bytes != 0 && fstat(file, &facts) == 0 && static_cast<uint64_t>(facts.st_size) >= bytes;
    void* mapped = whole ? mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0) : MAP_FAILED;
    close(file);
    if (mapped == MAP_FAILED) return;
    mapping_ = {mapped, [bytes](void* all) { munmap(all, bytes); }};
    size_ = bytes;
}

std::string read_file(int file, uint64_t bytes) {
    std::string all;
    try {
        all.resize(bytes);
    } catch (...) {
        close(file);
        throw;
    }
    for (size_t at = 0; at < all.size();) {
        const ssize_t got = pread(file, all.data() + at, all.size() - at, static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        at += static_cast<size_t>(got);
        if (at == all.size()) return close(file), all;
    }
    close(file);
    return {};
}

}  // namespace smt::runtime::server
