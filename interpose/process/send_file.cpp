#include "interpose/process/send_file.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "interpose/process/state.h"

namespace smt::interpose {

bool send_with_file(const void* packet, size_t bytes, int file, int flags) {
    iovec part{const_cast<void*>(packet), bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &file, sizeof file);
    ssize_t done;
    do done = sendmsg(control_socket(), &message, MSG_NOSIGNAL | flags);
    while (done < 0 && errno == EINTR);
    return done == static_cast<ssize_t>(bytes);
}

}  // namespace smt::interpose
