// Chunks of the simulated device: one memory file each, which the keeper holds open.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "runtime/keeper/message.h"
#include "runtime/keeper/source.h"

namespace smt::runtime::keeper {

namespace {

class MemfdSource final : public Source {
public:
    ~MemfdSource() override {
        for (const auto& [id, file] : files_) close(file);
    }
    int create(uint64_t id, uint64_t bytes) override {
        const int file = memfd_create("smt-kept", MFD_CLOEXEC);
        if (file < 0) return kNoMemory;
        if (ftruncate(file, static_cast<off_t>(bytes)) != 0) return close(file), kNoMemory;
        files_[id] = file;
        return 0;
    }
    void release(uint64_t id) override {
        close(files_.at(id));
        files_.erase(id);
    }
    int descriptor(uint64_t id, int* file) override {
        *file = fcntl(files_.at(id), F_DUPFD_CLOEXEC, 0);
        return *file < 0 ? kNoMemory : 0;
    }

private:
    std::map<uint64_t, int> files_;
};

}  // namespace

std::unique_ptr<Source> memfd_source() { return std::make_unique<MemfdSource>(); }

}  // namespace smt::runtime::keeper
