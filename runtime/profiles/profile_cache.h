// The profile cache: all kernels that a server has seen, and the store of their profiles.
//
// open() enqueues the look-up of a new kernel for the cache's own thread and does not wait; until then the
// kernel has no profiles. If a known kernel is opened and another process has written to the store (`smt
// profile`, another server), the thread looks all kernels up again. New measurements are written when a
// tenant leaves, on write_soon(), and at the end. If the store fails, the cache notes it once and does
// nothing from then on. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/store/store.h"
#include "runtime/profiles/known_kernel.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::profiles {

// SMT_PROFILES, or its default; empty: profiles are not kept.
std::string store_path();

// The identity of an image: a digest of its size and both ends, or of the whole image if it is small.
std::string image_identity(std::string_view image);

class ProfileCache {
public:
    using Note = std::function<void(const std::string& line)>;

    // `path` empty: nothing is looked up or written. `every`: also write measurements in this interval; 0: do
    // not.
    ProfileCache(std::string path, DeviceFacts facts, Note note, std::chrono::milliseconds every = {});
    ~ProfileCache();  // writes the remaining measurements
    ProfileCache(const ProfileCache&) = delete;
    ProfileCache& operator=(const ProfileCache&) = delete;

    const DeviceFacts& facts() const { return facts_; }
    std::string identify(std::string_view image) const { return kept_ ? image_identity(image) : ""; }
    // Null: profiles are not kept, or the image is not known.
    std::shared_ptr<KnownKernel> open(const std::string& symbol, const std::string& image);
    void write_soon();
    // Blocks until all earlier requests are done.
    void wait();

private:
    void run();
    std::vector<std::shared_ptr<KnownKernel>> all();
    void look_up(KnownKernel& kernel);
    bool others_wrote();
    bool write(KnownKernel& kernel);  // whether there was anything to write
    void give_up(const std::string& why);

    const DeviceFacts facts_;
    const Note note_;
    const std::chrono::milliseconds every_;
    const bool kept_;
    profiler::Store store_;           // only for the thread
    std::optional<int64_t> version_;  // of the store at the last look-up of all; only for the thread

    std::mutex mutex_;  // guards the members below
    std::condition_variable wake_, done_;
    std::map<std::pair<std::string, std::string>, std::shared_ptr<KnownKernel>> kernels_;
    std::vector<std::shared_ptr<KnownKernel>> fresh_;  // not yet looked up
    bool met_again_ = false;
    bool write_ = false;
    bool busy_ = false;
    bool ending_ = false;
    bool failed_ = false;
    Thread thread_;  // started with the first kernel
};

}  // namespace smt::runtime::profiles
