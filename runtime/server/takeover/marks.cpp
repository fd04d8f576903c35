#include "runtime/server/takeover/marks.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace smt::runtime::server {

namespace {

constexpr uint32_t kReplays = ~0u;  // a lane without a client (scratch_lane.h)

}  // namespace

Marks::Page* Marks::map(int file) {
    void* const page = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return page == MAP_FAILED ? nullptr : static_cast<Page*>(page);
}

std::unique_ptr<Marks> Marks::make() {
    const int file = memfd_create("smt-marks", MFD_CLOEXEC);
    if (file < 0) return nullptr;
    Page* const page = ftruncate(file, sizeof(Page)) == 0 ? map(file) : nullptr;
    if (!page) return close(file), nullptr;
    page->lanes_used.store(1);
    return std::unique_ptr<Marks>(new Marks(file, page));
}

std::unique_ptr<Marks> Marks::open(int file) {
    struct stat found{};
    Page* const page =
        fstat(file, &found) == 0 && found.st_size == static_cast<off_t>(sizeof(Page)) ? map(file) : nullptr;
    if (!page) return close(file), nullptr;
    return std::unique_ptr<Marks>(new Marks(file, page));
}

Marks::~Marks() {
    munmap(page_, sizeof(Page));
    close(file_);
}

Marks::Lane* Marks::lane(uint32_t index) {
    if (index == kReplays) return nullptr;
    if (index >= kMostLanes) return page_->crowded.store(1), nullptr;
    const uint32_t used = index + 2;
    uint32_t before = page_->lanes_used.load();
    while (before < used && !page_->lanes_used.compare_exchange_weak(before, used)) {
    }
    return &page_->lanes[index + 1];
}

const Marks::Lane* Marks::lane(uint32_t index) const {
    return index < kMostLanes ? &page_->lanes[index + 1] : nullptr;
}

uint64_t Marks::uses() const {
    uint64_t sum = 0;
    const uint32_t used = std::min(page_->lanes_used.load(), kMostLanes + 1);
    for (uint32_t i = 0; i < used; ++i) sum += page_->lanes[i].uses.load(std::memory_order_acquire);
    return sum;
}

void Marks::rests(uint64_t uses) {
    uint64_t before = page_->resting.load();
    while (before < uses && !page_->resting.compare_exchange_weak(before, uses)) {
    }
}

bool Marks::stands() const {
    const uint32_t used = std::min(page_->lanes_used.load(), kMostLanes + 1);
    return std::all_of(page_->lanes, page_->lanes + used,
                       [](const Lane& lane) { return lane.begun.load() == lane.over.load(); });
}

std::string Marks::why_not(uint64_t changes) const {
    if (page_->crowded.load() != 0) return "it had too many threads";
    if (!stands()) return "a call of it was under way";
    if (uses() != resting()) return "work of it was under way on the GPU, or may have been";
    if (page_->changes.load() != changes)
        return "it had made or freed something a moment before, or is not described yet";
    return {};
}

}  // namespace smt::runtime::server
