#include "runtime/jit/service.h"

#include <cuda.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <system_error>

#include "runtime/jit/digest.h"
#include "runtime/jit/form.gen.h"
#include "runtime/jit/messages.h"

namespace smt::runtime::jit {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::string_view kElf = "\177ELF";
constexpr uint64_t kMostImageBytes = 64ull << 20;      // of an image that is looked up
constexpr uint64_t kMostFinishedBytes = 256ull << 20;  // beyond, the oldest results are on disk only
constexpr size_t kMostFinished = 4096;
constexpr size_t kMostAnnounced = 4096;         // images of a tenant, whose pairs are known
constexpr auto kIdle = 60s;                     // after which a worker is not kept
constexpr std::string_view kProven = "proven";  // before, a pair was believed: other keys

Form form_of(std::string_view image) { return image.starts_with(kElf) ? Form::kCubin : Form::kPtx; }

// Which one this build has; empty: none.
#ifdef SMT_PTX_COMPILER
constexpr std::string_view kPtxCompiler = SMT_PTX_COMPILER;
#else
constexpr std::string_view kPtxCompiler;
#endif

std::string index_key(const std::string& identity, bool inside) {
    return digest({"index", kProven, kFormVersion, inside ? "inside" : "", identity});
}

// `origin`: where a source is from.
std::string title(const char* origin, const Order& order) {
    return order.language == Language::kPtx ? "PTX of an image"
                                            : fmt::format("source {}: {}", origin, order.source.name);
}

// Worth another try: it says nothing of the source.
Result failed_for_now(std::string reason) {
    Result result;
    result.reason = std::move(reason);
    return result;
}

std::chrono::milliseconds milliseconds_since(Clock::time_point began) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
}

uint64_t size_of(const Result& result) { return result.image.size() + result.log.size() + 1024; }

}  // namespace

Service::Service(Settings settings, Say say)
    : settings_(std::move(settings)),
      say_(std::move(say)),
      cache_(settings_.cache_folder, settings_.cache_bytes, say_),
      index_(settings_.cache_folder, say_),
      queue_(settings_.workers, Queue::Limits{}) {}

Service::~Service() {
    {
        std::lock_guard lock(mutex_);
        leaving_ = true;
        for (Compiler* compiler : compilers_) compiler->interrupt();
    }
    work_.notify_all();
    threads_.clear();  // joins them
}

bool Service::may_be_known(std::string_view image) {
    return image.size() <= kMostImageBytes && image.size() >= sizeof(uint32_t) && !is_fatbin(image);
}

void Service::submit(TenantId tenant, Source source, std::string directory, std::string image) {
    if (!may_be_known(image)) return;
    auto job = std::make_shared<Job>();
    job->image_identity = identity_of(image);
    job->order = {std::move(source), form_of(image), ""};
    job->order.directory = std::move(directory);
    job->order.proves = job->image_identity;
    job->order.inside = settings_.inside;
    job->identity = digest({"captured", encode(job->order)});
    job->order.image = std::move(image);
    enqueue(tenant, std::move(job));
}

std::string Service::request(TenantId tenant, std::string_view image, const Choices& choices) {
    const std::string& code = choices.code;
    if (code.empty() || !is_fatbin(image) || image.size() > kMostImageBytes || settings_.compiler.empty())
        return "";
    std::optional<Indexed> indexed = index_.find(image);
    if (!indexed) return "";
    for (Indexed::Variant& variant : indexed->variants) {
        if (std::count(variant.codes.begin(), variant.codes.end(), code) == 0) continue;
        auto job = std::make_shared<Job>();
        job->origin = "indexed";
        job->order = {std::move(variant.source), code.starts_with("sm_") ? Form::kCubin : Form::kPtx, code};
        job->order.ptx = choices.ptx.text;
        job->order.inside = settings_.inside;
        job->order.variables = std::move(indexed->variables);
        // It has the source too, since another smt may make another one of the same program.
        job->identity = digest({"indexed", identity_of(image), encode(job->order)});
        job->order.image = image;
        enqueue(tenant, job);
        return job->identity;
    }
    return "";
}

std::string Service::submit_ptx(TenantId tenant, PtxChoice choice, const Target& target) {
    auto job = std::make_shared<Job>();
    job->order.source.text = std::move(choice.text);
    job->order.registers = std::move(choice.registers);
    job->order.language = Language::kPtx;
    job->order.inside = settings_.inside;
    if (!target.text_only) job->order.architecture = fmt::format("sm_{}", target.architecture);
    if (target.assembled && has_ptx_compiler()) job->code = std::move(choice.code);
    std::string identity = job->identity = digest({"ptx", encode(job->order)});
    enqueue(tenant, std::move(job));
    return identity;
}

Order Service::assembly_of(std::string text, std::string code, std::vector<std::string> options) {
    Order order;
    order.language = Language::kAssembly;
    order.form = Form::kCubin;
    order.architecture = std::move(code);
    order.source.options = std::move(options);
    const uint64_t bytes = text.size();
    order.inputs.push_back({CU_JIT_INPUT_PTX, 0, bytes, "", std::move(text)});
    return order;
}

std::string Service::make_machine_code(TenantId tenant, Order order) {
    auto job = std::make_shared<Job>();
    job->order = std::move(order);
    std::string identity = job->identity = digest({"machine code", kPtxCompiler, encode(job->order)});
    enqueue(tenant, std::move(job));
    return identity;
}

bool Service::has_ptx_compiler() { return !kPtxCompiler.empty(); }

Service::JobPointer Service::find(const std::string& identity) const {
    auto known = jobs_.find(identity);
    return known == jobs_.end() ? nullptr : known->second;
}

void Service::announce(TenantId tenant, const Job& job) {
    Announced& own = announced_[tenant];
    if (auto [place, first] = own.pairs.insert_or_assign(job.image_identity, job.identity); first)
        own.images.push_back(job.image_identity);
    if (own.images.size() <= kMostAnnounced) return;
    own.pairs.erase(own.images.front());
    own.images.pop_front();
}

std::string Service::announced(TenantId tenant, const std::string& image) const {
    auto own = announced_.find(tenant);
    if (own == announced_.end()) return "";
    auto pair = own->second.pairs.find(image);
    return pair == own->second.pairs.end() ? "" : pair->second;
}

// Takes the job's result out of the cache, if it is there and not in memory.
void Service::look_up(const JobPointer& job) {
    {
        std::lock_guard lock(mutex_);
        if (find(job->identity)) return;
    }
    const auto began = Clock::now();
    if (const ResultPointer kept = from_index(job->identity, job->image_identity))
        report(*job, *kept, true, milliseconds_since(began));
}

// What went wrong with the worker may go right the next time.
void Service::enqueue(TenantId tenant, JobPointer job) {
    job->bytes = job->order.source.text.size() + job->order.image.size() + job->order.ptx.size();
    for (const auto& [name, text] : job->order.source.headers) job->bytes += text.size();
    for (const Input& input : job->order.inputs) job->bytes += input.data.size();
    look_up(job);
    std::lock_guard lock(mutex_);
    if (leaving_) return;
    if (!job->image_identity.empty()) announce(tenant, *job);
    if (JobPointer known = find(job->identity)) {
        if (!known->result) {
            if (!known->tenants.empty()) queue_.add(tenant, known);  // or it runs
            return;
        }
        if (known->result->lasting) return;
    }
    jobs_[job->identity] = job;
    if (!queue_.add(tenant, job)) {
        say_(fmt::format("{}: not compiled, too many of this tenant's compiles wait",
                         title(job->origin, job->order)));
        return finish(job, failed_for_now("too many of this tenant's compiles wait"));
    }
    if (idle_ < queue_.size() && threads_.size() < settings_.workers && !start_thread()) {
        queue_.drop(job);
        return finish(job, failed_for_now("there is no thread for the compile worker"));
    }
    work_.notify_one();
}

bool Service::start_thread() {
    if (!threads_.emplace_back().serve({"compiler", ""}, [this] { run(); }).empty())
        threads_.pop_back();  // others do its work, later
    return !threads_.empty();
}

Service::Answer Service::wait_for(TenantId tenant, const std::string& identity,
                                  std::chrono::milliseconds patience) {
    ResultPointer refusal;
    std::string own;
    {
        std::unique_lock lock(mutex_);
        own = announced(tenant, identity);
        for (const std::string& each : {own, identity}) {
            JobPointer job = each.empty() ? nullptr : find(each);
            if (!job) continue;
            if (patience > patience.zero()) queue_.hurry(tenant, job);
            done_.wait_for(lock, patience, [&] { return job->result || leaving_; });
            if (!job->result) return {State::kPending, nullptr};
            if (!job->result->image.empty()) return {State::kDone, job->result};
            if (!refusal) refusal = job->result;
        }
    }
    for (const std::string& each : {own, identity}) {
        ResultPointer kept = each.empty() ? nullptr : from_index(each);
        if (kept && !kept->image.empty()) return {State::kDone, kept};
        if (!refusal) refusal = kept;
    }
    return {refusal ? State::kDone : State::kUnknown, refusal};
}

void Service::forget(TenantId tenant) {
    std::lock_guard lock(mutex_);
    announced_.erase(tenant);
    for (const QueuedPointer& each : queue_.leave(tenant))
        finish(std::static_pointer_cast<Job>(each), failed_for_now("the program that asked for it is gone"));
}

ResultPointer Service::from_index(const std::string& identity, const std::string& image_identity) {
    std::optional<std::string> key = cache_.load(index_key(identity, settings_.inside));
    std::optional<std::string> bytes = key ? cache_.load(*key) : std::nullopt;
    std::optional<Result> result = bytes ? decode_result(*bytes) : std::nullopt;
    if (!result) return nullptr;
    auto job = std::make_shared<Job>();
    job->identity = identity;
    job->image_identity = image_identity;
    std::lock_guard lock(mutex_);
    if (JobPointer known = find(identity); known && known->result) return known->result;  // meanwhile
    jobs_[identity] = job;
    finish(job, std::move(*result));
    return job->result;
}

// A thread's worker, for as long as the destructor may interrupt it.
class Service::Listed {
public:
    Listed(Service& service, Compiler& compiler) : service_(service), compiler_(compiler) {
        std::lock_guard lock(service_.mutex_);
        service_.compilers_.push_back(&compiler_);
        if (service_.leaving_) compiler_.interrupt();
    }
    ~Listed() {
        std::lock_guard lock(service_.mutex_);
        std::erase(service_.compilers_, &compiler_);
    }
    Listed(const Listed&) = delete;
    Listed& operator=(const Listed&) = delete;

private:
    Service& service_;
    Compiler& compiler_;
};

void Service::run() {
    Compiler compiler(settings_);
    const Listed listed(*this, compiler);  // past the lock, also where something throws
    std::unique_lock lock(mutex_);
    while (true) {
        JobPointer job;
        const auto ready = [&] { return leaving_ || (job = std::static_pointer_cast<Job>(queue_.next())); };
        ++idle_;
        if (!work_.wait_for(lock, kIdle, ready)) {
            compiler.rest();
            work_.wait(lock, ready);
        }
        --idle_;
        if (leaving_) break;
        lock.unlock();
        const auto began = Clock::now();
        bool from_cache = false;
        Result result;
        try {
            result = result_of(*job, compiler, from_cache);
        } catch (const std::exception& error) {
            result = failed_for_now(error.what());
        }
        report(*job, result, from_cache, milliseconds_since(began));  // before it is loaded
        have_assembled(*job, result);                                 // before it is known
        warn(compiler.lacking());
        lock.lock();
        queue_.done(*job);
        finish(job, std::move(result));
        done_.notify_all();
    }
}

// The thread's: may take long.
Result Service::result_of(const Job& job, Compiler& compiler, bool& from_cache) {
    std::string problem;
    const bool compiles = job.order.language == Language::kCuda;  // PTX needs no NVRTC
    const std::string nvrtc = compiles ? compiler.nvrtc(problem) : "";
    if (!problem.empty()) return failed_for_now(problem);
    const std::string key = key_of(job, nvrtc);
    if (std::optional<std::string> bytes = cache_.load(key)) {
        if (std::optional<Result> kept = decode_result(*bytes)) return from_cache = true, *kept;
    }
    Result result = compiler.compile(job.order);
    result.language = job.order.language;
    // Which nvJitLink is not in the key.
    if (result.lasting && !result.refuted && job.order.language != Language::kLink) {
        cache_.store(key, encode(result));
        cache_.store(index_key(job.identity, job.order.inside), key);
        if (result.shared && !result.image.empty() && !job.image_identity.empty())
            cache_.store(index_key(job.image_identity, job.order.inside), key);
    }
    return result;
}

// The next load of the image asks for it, too; so nothing is lost where this fails.
void Service::have_assembled(const Job& job, const Result& result) {
    if (job.code.empty() || result.image.empty()) return;
    try {
        make_machine_code(job.running_for, assembly_of(result.image, job.code));
    } catch (const std::exception& error) {
        say_(fmt::format("{}: its managed form is not assembled yet: {}", title(job.origin, job.order),
                         error.what()));
    }
}

std::string Service::key_of(const Job& job, const std::string& nvrtc) const {
    return digest({"result, 5", kProven, kFormVersion, nvrtc, job.identity, encode(job.order)});
}

void Service::finish(const JobPointer& job, Result result) {
    job->order = {};
    job->result = std::make_shared<const Result>(std::move(result));
    if (job->result->shared && !job->result->image.empty() && !job->image_identity.empty())
        jobs_[job->image_identity] = job;
    finished_.push_back(job);
    finished_bytes_ += size_of(*job->result);
    while (finished_.size() > 1 && (finished_.size() > kMostFinished || finished_bytes_ > kMostFinishedBytes))
        evict();
    compiled_.fetch_add(1, std::memory_order_release);
}

void Service::evict() {
    JobPointer oldest = finished_.front();
    finished_.pop_front();
    finished_bytes_ -= size_of(*oldest->result);
    for (const std::string& name : {oldest->identity, oldest->image_identity}) {
        auto known = jobs_.find(name);  // another one, where it was done again
        if (known != jobs_.end() && known->second == oldest) jobs_.erase(known);
    }
}

void Service::report_machine_code(const Order& order, const Result& result, bool from_cache,
                                  std::chrono::milliseconds took) {
    size_t bytes = 0;
    for (const Input& input : order.inputs) bytes += input.data.size();
    say_(fmt::format("{} for {}, {} bytes: {}; {} {} ms",
                     order.language == Language::kLink ? "a link" : "PTX", order.architecture, bytes,
                     result.image.empty()
                         ? "no machine code: " + result.reason.substr(0, result.reason.find('\n'))
                         : fmt::format("{} bytes of machine code", result.image.size()),
                     from_cache ? "kept from before," : "compiled in", took.count()));
}

// Once: what it lacks the kernel lacks.
void Service::warn(const std::string& lacking) {
    if (!lacking.empty() && !warned_.exchange(true))
        say_(fmt::format("this machine's kernel does not confine the compile workers by {}", lacking));
}

void Service::report(const Job& job, const Result& result, bool from_cache, std::chrono::milliseconds took) {
    size_t managed = 0;
    std::map<std::string, std::pair<size_t, std::string>> refused;  // by reason: how many, and one of them
    std::string unchecked;
    for (const CompiledKernel& kernel : result.kernels) {
        if (!kernel.unchecked.empty()) unchecked += fmt::format(" ({}: {})", kernel.name, kernel.unchecked);
        if (!kernel.managed.empty())
            ++managed;
        else if (auto& [count, name] = refused[kernel.reason]; ++count == 1)
            name = kernel.name;
    }
    const Order& order = job.order;
    if (order.language == Language::kAssembly || order.language == Language::kLink)
        return report_machine_code(order, result, from_cache, took);
    std::string line =
        fmt::format("{}, {} bytes: {} kernels managed{}, {} refused", title(job.origin, order),
                    order.source.text.size(), result.image.empty() ? 0 : managed,
                    order.language == Language::kPtx ? " by PTX" : "", result.kernels.size() - managed);
    for (const auto& [reason, some] : refused)
        line += fmt::format(" ({}{}: {})", some.second,
                            some.first > 1 ? fmt::format(" and {} more", some.first - 1) : "", reason);
    if (order.inside) line += "; checks inside blocks" + (unchecked.empty() ? "" : ", none in" + unchecked);
    if (!result.reason.empty()) line += "; " + result.reason;
    say_(fmt::format("{}; {} {} ms", line, from_cache ? "kept from before," : "compiled in", took.count()));
}

}  // namespace smt::runtime::jit
