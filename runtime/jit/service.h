// Compiles in the background what programs gave to NVRTC, and what `smt index` found of nvcc's images, so
// that the managed form of an image is there when the image is loaded.
//
//   submit(source, image)   a program took `image` out of a compile of `source`, so it says: compiled now, by
//   a thread of
//                           the service and its worker, or found in the cache
//   request(image, ...)     a program loads `image`, which nvcc made: compiled now, if the index has its
//   source wait_for(identity)      a program loads an image: what came of it
//
//   submit_ptx(choice)      a program loads an image whose source is not known, and this is its PTX: put into
//                           persistent form in the same way
//
// Several threads, each with a worker of its own, take the compiles from one queue in which tenants take
// turns (queue.h). What is asked for twice is compiled once.
//
// An image is known by a hash of its bytes. That a source belongs to an image is believed when the worker has
// made that image of it. What was made of a source whose text was rewritten is given to tenants that
// announced that very source; what was made of the image's own PTX, to any that loads the image
// (Result::shared). So a source cannot put its kernels in another program.
//
// The cache's key has the image's hash too, beside the source, the options and the versions of rewriter and
// NVRTC: so the headers that the source includes from files need not be known, for what they change they
// change in the image. A second, small file leads from what is waited for to the key: a program that keeps
// its compiled kernels on disk and loads them without NVRTC is recognised too.
//
// What is in the cache is there at once, when it is asked for: no thread looks it up.
//
// Any thread may call anything. Nothing here calls the driver or waits for a compile, but wait_for().
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/jit/cache.h"
#include "runtime/jit/compiler.h"
#include "runtime/jit/index.h"
#include "runtime/jit/ptx.h"
#include "runtime/jit/queue.h"
#include "runtime/jit/settings.h"
#include "runtime/jit/source.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::jit {

class Service {
public:
    using Say = std::function<void(const std::string& line)>;  // one line for the journal; any thread

    // Starts neither threads nor workers before they are needed.
    Service(Settings settings, Say say);
    ~Service();  // gives up what is compiled
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    // A pair that was submitted already is not compiled again, unless the worker failed. `directory`: that
    // the source was compiled in.
    void submit(TenantId tenant, Source source, std::string directory, std::string image);

    // What to wait for; empty: it is no image of nvcc's, or its source is not in the index.
    std::string request(TenantId tenant, std::string_view image, const Choices& choices);

    // Of one text the work is done once. Returns what to wait for. If the target has it assembled, what is
    // made becomes machine code at once: assembly_of() it, without options, is asked for.
    std::string submit_ptx(TenantId tenant, PtxChoice choice, const Target& target);

    // Machine code of the order's inputs (kAssembly, kLink). Returns what to wait for.
    std::string make_machine_code(TenantId tenant, Order order);
    static Order assembly_of(std::string text, std::string code, std::vector<std::string> options = {});
    static bool has_ptx_compiler();  // this build; otherwise the driver compiles PTX

    enum class State { kUnknown, kPending, kDone };
    struct Answer {
        State state = State::kUnknown;
        ResultPointer result;  // kDone
    };
    // Waits while the compile is under way, `patience` at most. `identity`: of an image that was submitted,
    // identity_of(); else what a request returned. With a patience the compile is for a load that waits, and
    // goes before those that no load waits for.
    Answer wait_for(TenantId tenant, const std::string& identity, std::chrono::milliseconds patience);

    // Grows with each compile that is over: until then nothing that is awaited has changed.
    uint64_t compiled() const { return compiled_.load(std::memory_order_acquire); }

    // The tenant is gone, and waits for nothing.
    void forget(TenantId tenant);

    const Settings& settings() const { return settings_; }
    static bool may_be_known(std::string_view image);  // cheap; false: it is nothing that NVRTC makes

private:
    struct Job : Queued {
        std::string identity;
        std::string image_identity;       // captured: of the image
        const char* origin = "captured";  // or indexed; of PTX it says nothing
        std::string code;                 // that the PTX which is made becomes; empty: it stays as it is
        Order order;                      // until it is done
        ResultPointer result;             // null: not done
    };
    using JobPointer = std::shared_ptr<Job>;
    // Which pair a tenant announced for an image, the last one: identities. The oldest are forgotten.
    struct Announced {
        std::unordered_map<std::string, std::string> pairs;
        std::deque<std::string> images;
    };

    void enqueue(TenantId tenant, JobPointer job);
    bool start_thread();  // false: there is none
    void announce(TenantId tenant, const Job& job);
    std::string announced(TenantId tenant, const std::string& image) const;  // empty: nothing
    JobPointer find(const std::string& identity) const;
    class Listed;
    void run();
    Result result_of(const Job& job, Compiler& compiler, bool& from_cache);
    void have_assembled(const Job& job, const Result& result);
    std::string key_of(const Job& job, const std::string& nvrtc) const;
    ResultPointer from_index(const std::string& identity, const std::string& image_identity = "");
    void look_up(const JobPointer& job);
    void finish(const JobPointer& job, Result result);  // with mutex_ held
    void evict();
    void report_machine_code(const Order& order, const Result& result, bool from_cache,
                             std::chrono::milliseconds took);
    void warn(const std::string& lacking);
    void report(const Job& job, const Result& result, bool from_cache, std::chrono::milliseconds took);

    const Settings settings_;
    const Say say_;
    Cache cache_;
    SourceIndex index_;

    std::atomic<bool> warned_{false};
    std::atomic<uint64_t> compiled_{0};

    std::mutex mutex_;  // the rest
    std::condition_variable work_, done_;
    std::unordered_map<std::string, JobPointer> jobs_;  // by identity, and shared results by the image's
    std::unordered_map<TenantId, Announced> announced_;
    Queue queue_;
    std::deque<JobPointer> finished_;  // oldest first
    uint64_t finished_bytes_ = 0;
    bool leaving_ = false;
    size_t idle_ = 0;                   // threads that wait for work
    std::vector<Compiler*> compilers_;  // the threads'
    std::deque<Thread> threads_;
};

}  // namespace smt::runtime::jit
