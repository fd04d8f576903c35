#include "runtime/keeper/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/keeper/message.h"

namespace smt::runtime::keeper {

namespace {

constexpr size_t kControlBytes = CMSG_SPACE(kMostListed * sizeof(int));

}  // namespace

bool send_packet(int socket, const void* bytes, size_t size, const std::vector<int>& files, bool patient) {
    alignas(cmsghdr) char control[kControlBytes] = {};
    iovec part{const_cast<void*>(bytes), size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!files.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
        std::memcpy(CMSG_DATA(header), files.data(), files.size() * sizeof(int));
    }
    ssize_t sent = 0;
    do sent = sendmsg(socket, &message, MSG_NOSIGNAL | (patient ? 0 : MSG_DONTWAIT));
    while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(size);
}

size_t receive_packet(int socket, void* bytes, size_t size, std::vector<int>* files) {
    alignas(cmsghdr) char control[kControlBytes];
    iovec part{bytes, size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t got = 0;
    do got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0) return 0;
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
        const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        const size_t before = files->size();
        files->resize(before + count);
        std::memcpy(files->data() + before, CMSG_DATA(each), count * sizeof(int));
    }
    // Descriptors that found no room are lost: an answer without them would be wrong.
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return 0;
    return static_cast<size_t>(got);
}

void close_all(const std::vector<int>& files) {
    for (int file : files) close(file);
}

}  // namespace smt::runtime::keeper
