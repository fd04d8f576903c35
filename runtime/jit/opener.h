// Opens images in workers of its own, so that the server reads none of a tenant's: which entry the device
// loads, that entry unpacked and checked, and what the server has to know of it (opened.h).
//
// Several threads, each with a worker and memory that it has with it (shared.h). The workers are the compile
// service's program, confined in the same way, but they do nothing else: no load waits for a compile here.
// They stay, so that the next image finds one. Tenants take turns (queue.h).
//
// What an image does to its worker is an answer of that load, and the next image meets a fresh worker.
//
// Any thread may call open(). Nothing here calls the driver.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jit/compiler.h"
#include "runtime/jit/opened.h"
#include "runtime/jit/queue.h"
#include "runtime/jit/settings.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::jit {

class Opener {
public:
    using Say = std::function<void(const std::string& line)>;  // one line for the journal; any thread

    // Starts neither threads nor workers before they are needed.
    Opener(Settings settings, Say say);
    ~Opener();  // gives up what is opened
    Opener(const Opener&) = delete;
    Opener& operator=(const Opener&) = delete;

    enum class Outcome {
        kOpened,    // or refused: Opened::problem
        kLost,      // the worker crashed, took too long or answered nonsense
        kNoWorker,  // it cannot be started
    };
    struct Answer {
        Outcome outcome = Outcome::kNoWorker;
        std::string reason;  // of what is not kOpened, in words
        Opened opened;
    };
    // Waits for the worker, which has a time limit. `image` must stay.
    Answer open(TenantId tenant, const OpenOrder& asked, std::string_view image);
    // Begins to open images that open() will be asked for by the same tenant, order and addresses, in this
    // order: so many at once as there are workers, and the next one when open() has taken one, as answers may
    // be large. Until then, or until the object is gone, they must stay where they are. It outlives open().
    class Ahead;
    std::unique_ptr<Ahead> ahead(TenantId tenant, const OpenOrder& asked,
                                 const std::vector<std::string_view>& images);
    // Starts a worker, which makes what doors on an architecture (90: sm_90) need: the first image of a
    // fresh worker waits for that, some ten milliseconds. Does not wait.
    void warm(int architecture);

private:
    struct Job : Queued {
        OpenOrder asked;
        std::string_view image;
        Answer answer;
        Ahead* ahead = nullptr;                           // of which it is; null: of none
        bool waits = false, begun = false, done = false;  // in the queue; a worker has it
        bool warms = false;
    };
    using JobPointer = std::shared_ptr<Job>;
    struct Worker;

    static JobPointer make_job(const OpenOrder& asked, std::string_view image);
    std::string begin(TenantId tenant, const JobPointer& job);  // empty, or why not
    void run();
    static Answer open_with(Worker& worker, const Job& job);
    void warn(const std::string& lacking);

    const Settings settings_;
    const Say say_;

    std::mutex mutex_;  // the rest; the caller of begin() holds it
    std::condition_variable work_, done_;
    Queue queue_;
    bool leaving_ = false, warned_ = false;
    size_t idle_ = 0;               // threads that wait for work
    std::vector<Worker*> workers_;  // the threads'
    std::deque<Thread> threads_;
    std::map<std::pair<TenantId, std::string_view::const_pointer>, JobPointer> ahead_;
};

class Opener::Ahead {
public:
    Ahead(Opener& opener, TenantId tenant) : opener_(opener), tenant_(tenant) {}
    ~Ahead();  // waits for those that workers have in hand
    Ahead(const Ahead&) = delete;
    Ahead& operator=(const Ahead&) = delete;

private:
    friend class Opener;
    void begin_next();  // with the opener's lock held

    Opener& opener_;
    const TenantId tenant_;
    std::vector<JobPointer> jobs_;
    size_t next_ = 0;
};

}  // namespace smt::runtime::jit
