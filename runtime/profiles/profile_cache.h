// All kernels that a server has met, and the file that their profiles are kept in.
//
// A kernel is looked up when it is met first, by a thread of the book's own: nobody waits, and until then nothing is known of it. When
// one is met again and somebody else has written to the file (`smt profile`, another server), all are looked up anew. What
// was learnt is written when a tenant leaves, when somebody asks, and at the end. Any thread.
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

// SMT_PROFILES, or its default; empty: nothing is kept.
std::string store_path();

// What tells images apart: a digest of the size and of what stands at both ends, all of it if it is not large.
std::string image_identity(std::string_view image);

class ProfileCache {
public:
    using Note = std::function<void(const std::string& line)>;

    // `path` empty: nothing is looked up or written. `every`: what was learnt is written so often, too; 0: not.
    ProfileCache(std::string path, DeviceFacts facts, Note note, std::chrono::milliseconds every = {});
    ~ProfileCache();   // writes what is left
    ProfileCache(const ProfileCache&) = delete;
    ProfileCache& operator=(const ProfileCache&) = delete;

    const DeviceFacts& facts() const { return facts_; }
    std::string identify(std::string_view image) const { return kept_ ? image_identity(image) : ""; }
    // Null where nothing is kept, or where the image is not known.
    std::shared_ptr<KnownKernel> open(const std::string& symbol, const std::string& image);
    void write_soon();
    // Until all that was asked for before has been done.
    void wait();

private:
    void run();
    std::vector<std::shared_ptr<KnownKernel>> all();
    void look_up(KnownKernel& kernel);
    bool others_wrote();
    bool write(KnownKernel& kernel);   // true: there was something
    void give_up(const std::string& why);

    const DeviceFacts facts_;
    const Note note_;
    const std::chrono::milliseconds every_;
    const bool kept_;
    profiler::Store store_;     // the thread's
    std::optional<int64_t> version_;   // of the store, when all were looked up; likewise

    std::mutex mutex_;          // the rest
    std::condition_variable wake_, done_;
    std::map<std::pair<std::string, std::string>, std::shared_ptr<KnownKernel>> kernels_;
    std::vector<std::shared_ptr<KnownKernel>> fresh_;   // not looked up
    bool met_again_ = false;
    bool write_ = false;
    bool busy_ = false;
    bool ending_ = false;
    bool failed_ = false;
    Thread thread_;             // from the first kernel on
};

}  // namespace smt::runtime::profiles
