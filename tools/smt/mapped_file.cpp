#include "tools/smt/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace smt::tools {

MappedFile::MappedFile(const std::string& path) {
    int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe would wait for its writer
    struct stat facts{};
    if (file < 0 || ::fstat(file, &facts) != 0) {
        problem_ = std::strerror(errno);
    } else if (!S_ISREG(facts.st_mode)) {
        problem_ = S_ISDIR(facts.st_mode) ? "it is a folder" : "it is not a file of bytes";
    } else if (facts.st_size > 0) {
        void* at = ::mmap(nullptr, facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (at == MAP_FAILED)
            problem_ = std::strerror(errno);
        else
            bytes_ = {static_cast<const char*>(at), static_cast<size_t>(facts.st_size)};
    }
    if (file >= 0) ::close(file);
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace smt::tools
