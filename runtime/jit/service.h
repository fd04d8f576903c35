// Compiles in the background what programs gave to NVRTC, and what `smt index` found of nvcc's images, so that the
// managed form of an image is there when the image is loaded.
//
//   submit(source, image)   a program took `image` out of a compile of `source`: compiled now, by a thread of
//                           the service and its worker, or found in the cache
//   request(image, ...)     a program loads `image`, which nvcc made: compiled now, if the index has its source
//   wait(image, ...)        a program loads `image`: what came of it
//
//   submit_ptx(choice)      a program loads an image whose source is not known, and this is its PTX: put into
//                           persistent form in the same way
//   wait_ptx(...)           what came of it
//
// An image is known by a hash of its bytes. The cache's key has that hash too, beside the source, the options
// and the versions of rewriter and NVRTC: so the headers that the source includes from files need not be
// known, for what they change they change in the image. A second, small file leads from the image to the key:
// a program that keeps its compiled kernels on disk and loads them without NVRTC is recognised too.
//
// Any thread may call anything. Nothing here calls the driver or waits for a compile, but wait().
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "runtime/jit/cache.h"
#include "runtime/jit/compiler.h"
#include "runtime/jit/index.h"
#include "runtime/jit/ptx.h"
#include "runtime/jit/settings.h"
#include "runtime/jit/source.h"

namespace smt::runtime::jit {

// What an image is loaded into.
struct Target {
    int architecture = 0;     // 90 for compute capability 9.0
    bool text_only = false;   // it takes PTX, no machine code
};

class Service {
public:
    using Say = std::function<void(const std::string& line)>;   // one line for the journal; any thread

    // Starts neither its thread nor the worker before they are needed.
    Service(Settings settings, Say say);
    ~Service();   // gives up what is compiled
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    // An image that was submitted already is not compiled again, unless the worker failed.
    void submit(Source source, std::string image);

    // What to wait for; empty: it is no image of nvcc's, or its source is not in the index.
    std::string request(std::string_view image, const Target& target);

    enum class State { kUnknown, kPending, kDone };
    struct Answer {
        State state = State::kUnknown;
        ResultPointer result;   // kDone
    };
    // Waits while the image's compile is under way, `patience` at most.
    Answer wait(std::string_view image, std::chrono::milliseconds patience);
    Answer wait_for(const std::string& identity, std::chrono::milliseconds patience);   // identity_of(), or what a request returned

    // Of one text the work is done once. Returns what to wait for.
    std::string submit_ptx(PtxChoice choice, const Target& target);

    const Settings& settings() const { return settings_; }
    static bool may_be_known(std::string_view image);   // cheap; false: it is nothing that NVRTC makes

private:
    struct Job {
        std::string identity;
        const char* origin = "captured";       // or indexed; of PTX it says nothing
        Order order;                           // until it is done
        std::string image;                     // the program's own, until it is done; of PTX: empty
        std::vector<std::string> variables;    // that the managed image must have, whatever the image shows
        ResultPointer result;   // null: not done
    };
    using JobPointer = std::shared_ptr<Job>;

    void enqueue(JobPointer job);
    bool worth_doing(const std::string& identity) const;
    void run();
    Result result_of(const Job& job, bool& from_cache);
    std::string key_of(const Job& job, const std::string& nvrtc) const;
    ResultPointer from_index(const std::string& identity);
    void finish(const JobPointer& job, Result result);   // with mutex_ held
    void report(const Job& job, const Result& result, bool from_cache, std::chrono::milliseconds took);

    const Settings settings_;
    const Say say_;
    Cache cache_;
    SourceIndex index_;
    Compiler compiler_;   // the thread's

    std::mutex mutex_;   // the rest
    std::condition_variable work_, done_;
    std::unordered_map<std::string, JobPointer> jobs_;   // by identity
    std::deque<JobPointer> queue_;
    std::deque<JobPointer> finished_;   // oldest first
    uint64_t queued_bytes_ = 0;
    uint64_t finished_bytes_ = 0;
    bool leaving_ = false;
    std::thread thread_;
};

}  // namespace smt::runtime::jit
