// Packets of the control socket (handshake.h), each with a file descriptor or none.
#pragma once

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <cstddef>

namespace smt::protocol {

// `file`: -1: none; it stays the caller's. `flags`: those of sendmsg(2). False: it was not sent.
inline bool send_packet(int socket, const void* packet, size_t bytes, int file = -1, int flags = 0) {
    iovec part{const_cast<void*>(packet), bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &file, sizeof file);
    }
    ssize_t sent;
    do sent = sendmsg(socket, &message, MSG_NOSIGNAL | flags);
    while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(bytes);
}

// Waits for a packet. How many of its bytes are in `packet`, or as recvmsg(2) says. `*file`: the descriptor
// that came with it, which is the caller's to close; -1: none. The kernel discards further ones.
inline ssize_t receive_packet(int socket, void* packet, size_t bytes, int* file) {
    iovec part{packet, bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen =
        CMSG_LEN(sizeof(int));  // CMSG_SPACE() has room for another, which would stay open
    ssize_t got;
    do got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    *file = -1;
    const cmsghdr* header = got >= 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(file, CMSG_DATA(header), sizeof *file);
    return got;
}

}  // namespace smt::protocol
