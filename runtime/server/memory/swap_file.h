// A file for contents of device memory for which there is no host memory. It has no name in its folder, so
// nothing of it stays when the process ends, however that ends. It is a row of parts of one size; a part that
// is free again gives its place on the disk back, and is the first to be taken.
//
// It is read and written past the system's page cache where the file system can do that (O_DIRECT): else what
// is written for want of host memory would take it. Some say only at the first call that they cannot. A tmpfs
// is host memory itself, and refused.
//
// Any thread. Parts may outlive the file's other users.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace smt::runtime::server {

class SwapFile : public std::enable_shared_from_this<SwapFile> {
public:
    // The system's; tests have others.
    struct Calls {
        ssize_t (*write)(int file, const void* from, size_t bytes, off_t at);
        ssize_t (*read)(int file, void* to, size_t bytes, off_t at);
        static Calls of_system();
    };

    // A place in the file. An empty one is none.
    class Part {
    public:
        Part() = default;
        ~Part() { give_back(); }
        Part(Part&& other) noexcept : file_(std::move(other.file_)), at_(other.at_) {}
        Part& operator=(Part&& other) noexcept {
            if (this == &other) return *this;
            give_back();
            file_ = std::move(other.file_);
            at_ = other.at_;
            return *this;
        }
        explicit operator bool() const { return file_ != nullptr; }

    private:
        friend class SwapFile;
        Part(std::shared_ptr<SwapFile> file, uint64_t at) : file_(std::move(file)), at_(at) {}
        void give_back();

        std::shared_ptr<SwapFile> file_;
        uint64_t at_ = 0;  // in bytes
    };

    // `part_bytes`: a multiple of a page. Null: `*problem` names the folder, and says what to do.
    static std::shared_ptr<SwapFile> open(const std::string& folder, uint64_t part_bytes,
                                          std::string* problem, const Calls& calls = Calls::of_system());
    ~SwapFile();
    SwapFile(const SwapFile&) = delete;
    SwapFile& operator=(const SwapFile&) = delete;

    // A part with these bytes; `from` and `bytes` are multiples of a page. An empty part: it cannot be, as
    // `*problem` says, and the disk has what it had.
    Part write(const char* from, uint64_t bytes, std::string* problem);
    // Empty: `to` has the first bytes of the part. Else what is wrong.
    std::string read(const Part& part, char* to, uint64_t bytes);
    uint64_t parts() const;  // that are taken

private:
    SwapFile(int file, std::string folder, uint64_t part_bytes, bool direct, const Calls& calls)
        : file_(file), folder_(std::move(folder)), part_bytes_(part_bytes), direct_(direct), calls_(calls) {}
    uint64_t take();
    void give(uint64_t at);
    int write_all(const char* from, uint64_t bytes, uint64_t at);
    bool wants_cache(bool direct, int error);

    const int file_;
    const std::string folder_;
    const uint64_t part_bytes_;
    std::atomic<bool> direct_;
    const Calls calls_;
    mutable std::mutex mutex_;  // guards what follows; a leaf lock
    std::set<uint64_t> free_;
    uint64_t end_ = 0;  // of the last part that was ever taken
};

}  // namespace smt::runtime::server
