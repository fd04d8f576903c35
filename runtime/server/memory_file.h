// Which descriptors of clients the server reads.
#pragma once

#include <fcntl.h>

namespace smt::runtime::server {

// Memory alone. A file of another file system could make every call on it wait, as long as its owner likes.
inline bool is_memory_file(int file) { return file >= 0 && fcntl(file, F_GET_SEALS) >= 0; }

}  // namespace smt::runtime::server
