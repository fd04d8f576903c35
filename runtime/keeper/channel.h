// One packet with descriptors over a socket. Interrupted calls are repeated.
#pragma once

#include <cstddef>
#include <vector>

namespace smt::runtime::keeper {

// False: the other end is gone, or does not read (errno says which). Never blocks with `patient` false.
bool send_packet(int socket, const void* bytes, size_t size, const std::vector<int>& files, bool patient);
// The packet's size; 0: the other end is gone, or the packet is longer than `size`. The caller closes
// `files`, which are close-on-exec.
size_t receive_packet(int socket, void* bytes, size_t size, std::vector<int>* files);
void close_all(const std::vector<int>& files);

}  // namespace smt::runtime::keeper
