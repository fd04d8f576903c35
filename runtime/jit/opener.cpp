#include "runtime/jit/opener.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "runtime/jit/messages.h"
#include "runtime/jit/shared.h"

namespace smt::runtime::jit {

using namespace std::chrono_literals;

namespace {

// Half a gigabyte is unpacked in a second or two.
constexpr std::chrono::milliseconds kMostTime = 20s;

// A job holds none of the bytes: its load does.
constexpr Queue::Limits kLimits;

Settings of_opener(Settings settings) {
    settings.time = std::min(settings.time, kMostTime);
    settings.cpu = std::min(settings.cpu, kMostTime);
    return settings;
}

Opener::Answer failed(Opener::Outcome outcome, std::string reason) {
    return {outcome, std::move(reason), {}};
}

}  // namespace

struct Opener::Worker {
    explicit Worker(const Settings& settings) : settings(settings) {}

    bool prepare(std::string& problem) {
        if (!shared.create(problem)) return false;
        if (!compiler) compiler = std::make_unique<Compiler>(settings, shared.descriptor());
        return true;
    }

    const Settings& settings;
    SharedMemory shared;
    std::unique_ptr<Compiler> compiler;  // set with Opener::mutex_ held
};

Opener::Opener(Settings settings, Say say)
    : settings_(of_opener(std::move(settings))), say_(std::move(say)), queue_(settings_.workers, kLimits) {}

Opener::~Opener() {
    {
        std::lock_guard lock(mutex_);
        leaving_ = true;
        for (Worker* worker : workers_)
            if (worker->compiler) worker->compiler->interrupt();
    }
    work_.notify_all();
    threads_.clear();  // joins them
}

Opener::JobPointer Opener::make_job(const OpenOrder& asked, std::string_view image) {
    auto job = std::make_shared<Job>();
    job->asked = asked;
    job->image = image;
    return job;
}

std::string Opener::begin(TenantId tenant, const JobPointer& job) {
    if (leaving_) return "the server is leaving";
    if (!queue_.add(tenant, job)) return "too many of this tenant's images wait";
    if (idle_ < queue_.size() && threads_.size() < settings_.workers) {
        std::string why = threads_.emplace_back().serve({"opener", ""}, [this] { run(); });
        if (!why.empty()) threads_.pop_back();  // others do its work, later
        if (threads_.empty()) {
            queue_.drop(job);
            return "there is no thread for the compile worker: " + why;
        }
    }
    job->waits = true;
    work_.notify_one();
    return {};
}

Opener::Answer Opener::open(TenantId tenant, const OpenOrder& asked, std::string_view image) {
    std::unique_lock lock(mutex_);
    const auto expected = ahead_.extract({tenant, image.data()});
    const JobPointer job = expected ? expected.mapped() : make_job(asked, image);
    if (!job->waits)
        if (std::string why = begin(tenant, job); !why.empty())
            return failed(Outcome::kNoWorker, std::move(why));
    done_.wait(lock, [&] { return job->done; });
    if (job->ahead) job->ahead->begin_next();
    return std::move(job->answer);
}

std::unique_ptr<Opener::Ahead> Opener::ahead(TenantId tenant, const OpenOrder& asked,
                                             const std::vector<std::string_view>& images) {
    auto all = std::make_unique<Ahead>(*this, tenant);
    std::lock_guard lock(mutex_);
    for (const std::string_view image : images) {
        all->jobs_.push_back(make_job(asked, image));
        all->jobs_.back()->ahead = all.get();
        ahead_[{tenant, image.data()}] = all->jobs_.back();
    }
    for (size_t i = 0; i < settings_.workers; ++i) all->begin_next();
    return all;
}

// Where it fails open() begins it, and says why.
void Opener::Ahead::begin_next() {
    while (next_ < jobs_.size() && jobs_[next_]->waits) ++next_;
    if (next_ < jobs_.size()) opener_.begin(tenant_, jobs_[next_++]);
}

Opener::Ahead::~Ahead() {
    std::unique_lock lock(opener_.mutex_);
    for (const JobPointer& job : jobs_) {
        opener_.ahead_.erase({tenant_, job->image.data()});
        if (job->waits && !job->begun) opener_.queue_.drop(job);
    }
    for (const JobPointer& job : jobs_) opener_.done_.wait(lock, [&] { return job->done || !job->begun; });
}

void Opener::warm(int architecture) {
    const JobPointer job = make_job({}, {});
    job->asked.target.architecture = architecture;
    job->asked.doors = job->warms = true;
    std::lock_guard lock(mutex_);
    begin(kNoTenant, job);  // where it fails the next image starts a worker
}

void Opener::run() {
    Worker worker(settings_);
    std::unique_lock lock(mutex_);
    workers_.push_back(&worker);
    while (true) {
        JobPointer job;
        ++idle_;
        work_.wait(lock, [&] { return (job = std::static_pointer_cast<Job>(queue_.next())) || leaving_; });
        const bool warms = job && job->warms;  // an image that comes meanwhile waits for this worker
        if (!warms) --idle_;
        if (!job) break;
        job->begun = true;
        std::string problem;
        const bool ready = !leaving_ && worker.prepare(problem);
        lock.unlock();
        Answer answer;
        try {
            answer = ready ? open_with(worker, *job)
                           : failed(Outcome::kNoWorker, leaving_ ? "the server is leaving" : problem);
        } catch (const std::exception& error) {  // memory
            answer = failed(Outcome::kLost, error.what());
        }
        if (worker.compiler) warn(worker.compiler->lacking());
        lock.lock();
        job->answer = std::move(answer);
        job->done = true;
        queue_.done(*job);
        if (warms) --idle_;
        done_.notify_all();
        work_.notify_all();  // what this tenant may have run now
    }
    std::erase(workers_, &worker);
}

// The thread's: it may take long.
Opener::Answer Opener::open_with(Worker& worker, const Job& job) {
    std::string problem;
    if (!worker.shared.write(job.image))
        return failed(Outcome::kNoWorker, "there is no memory for the image");
    bool started = false;
    const std::string message = encode(ImageOrder{job.asked, job.image.size()});
    const std::optional<std::string> bytes =
        worker.compiler->exchange(Message::kOpen, message, Message::kOpened, problem, &started);
    if (!bytes) return failed(started ? Outcome::kLost : Outcome::kNoWorker, problem);
    bool is_unpacked = false;
    std::optional<Opened> opened = decode_opened(*bytes, job.image.size(), &is_unpacked);
    const bool good = opened && (!is_unpacked || worker.shared.read(opened->bytes, opened->unpacked));
    worker.shared.trim();
    if (good) return {Outcome::kOpened, "", std::move(*opened)};
    worker.compiler->rest();  // it is not what it was
    return failed(Outcome::kLost, "the compile worker answered nonsense");
}

// Once: what it lacks the kernel lacks.
void Opener::warn(const std::string& lacking) {
    std::lock_guard lock(mutex_);
    if (lacking.empty() || std::exchange(warned_, true)) return;
    say_(fmt::format("this machine's kernel does not confine the workers that open images by {}", lacking));
}

}  // namespace smt::runtime::jit
