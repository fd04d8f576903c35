#include "runtime/jit/shared.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace smt::runtime::jit {

namespace {

constexpr int kFirstDescriptor = 5;  // behind those that the worker finds its own at (compiler.cpp)

template <typename Move>
bool move_all(uint64_t bytes, Move move) {
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t moved = move(done, bytes - done);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return false;
        done += static_cast<uint64_t>(moved);
    }
    return true;
}

}  // namespace

SharedMemory::~SharedMemory() {
    if (file_ >= 0) close(file_);
}

bool SharedMemory::create(std::string& problem) {
    if (file_ >= 0) return true;
    const int file = memfd_create("smt-images", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const bool good = file >= 0 && ftruncate(file, kImageBytes + kUnpackedBytes) == 0 &&
                      fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0 &&
                      (file_ = fcntl(file, F_DUPFD_CLOEXEC, kFirstDescriptor)) >= 0;
    if (!good) problem = fmt::format("no memory for images: {}", std::strerror(errno));
    if (file >= 0) close(file);
    return good;
}

bool SharedMemory::write(std::string_view image) {
    if (image.size() > kImageBytes) return false;
    return move_all(image.size(), [&](uint64_t at, uint64_t bytes) {
        return pwrite(file_, image.data() + at, bytes, static_cast<off_t>(at));
    });
}

bool SharedMemory::read(uint64_t bytes, std::string& unpacked) const {
    if (bytes > kUnpackedBytes) return false;
    unpacked.resize(bytes);
    return move_all(bytes, [&](uint64_t at, uint64_t rest) {
        return pread(file_, unpacked.data() + at, rest, static_cast<off_t>(kImageBytes + at));
    });
}

void SharedMemory::trim() {
    for (const auto& [at, bytes] :
         {std::pair{kKept, kImageBytes - kKept}, {kImageBytes + kKept, kUnpackedBytes - kKept}})
        static_cast<void>(fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
                                    static_cast<off_t>(bytes)));
}

char* MappedMemory::Part::reach(uint64_t needed) {
    const uint64_t wanted = std::max(needed, SharedMemory::kKept);
    if (bytes == wanted) return data;
    drop();
    void* place =
        mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(at));
    if (place == MAP_FAILED) throw std::bad_alloc();
    bytes = wanted;
    return data = static_cast<char*>(place);
}

void MappedMemory::Part::drop() {
    if (data) munmap(data, bytes);
    data = nullptr, bytes = 0;
}

}  // namespace smt::runtime::jit
