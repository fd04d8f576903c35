#include "runtime/jit/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/image/choice.h"
#include "runtime/jit/digest.h"
#include "runtime/jit/exports.h"
#include "runtime/jit/form.gen.h"
#include "runtime/jit/messages.h"

namespace smt::runtime::jit {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::string_view kElf = "\177ELF";
constexpr uint64_t kMostImageBytes = 64ull << 20;     // of an image that is looked up
constexpr uint64_t kMostQueuedBytes = 256ull << 20;   // beyond, sources are turned away
constexpr uint64_t kMostFinishedBytes = 256ull << 20; // beyond, the oldest results are on disk only
constexpr size_t kMostFinished = 4096;
constexpr auto kIdle = 60s;                           // after which the worker is not kept

Form form_of(std::string_view image) { return image.starts_with(kElf) ? Form::kCubin : Form::kPtx; }

std::string index_key(const std::string& identity) { return digest({"index", kFormVersion, identity}); }

// `origin`: where a source is from.
std::string title(const char* origin, const Order& order) {
    return order.language == Language::kPtx ? "PTX of an image" : fmt::format("source {}: {}", origin, order.source.name);
}

uint64_t size_of(const Result& result) { return result.image.size() + result.log.size() + 1024; }

// Which of a fatbin's entries a device would run, as NVRTC names it: "sm_90", "compute_90"; empty: none.
std::string code_for(std::string_view image, const Target& target) {
    auto read = image::read(image);
    auto* entries = std::get_if<std::vector<image::Entry>>(&read);
    if (!entries) return "";
    const image::Entry* entry = image::choose(*entries, {target.architecture, !target.text_only, true});
    if (!entry) return "";
    std::string code = fmt::format("{}_{}", entry->kind == image::Kind::kCubin ? "sm" : "compute", entry->architecture);
    if (entry->variant) code += entry->variant;
    return code;
}

}  // namespace

Service::Service(Settings settings, Say say)
    : settings_(std::move(settings)),
      say_(std::move(say)),
      cache_(settings_.cache_folder, settings_.cache_bytes, say_),
      index_(settings_.cache_folder, say_),
      compiler_(settings_) {}

Service::~Service() {
    {
        std::lock_guard lock(mutex_);
        leaving_ = true;
    }
    compiler_.interrupt();
    work_.notify_all();
    if (thread_.joinable()) thread_.join();
}

bool Service::may_be_known(std::string_view image) {
    return image.size() <= kMostImageBytes && image.size() >= sizeof(uint32_t) && !is_fatbin(image);
}

void Service::submit(Source source, std::string image) {
    if (!may_be_known(image)) return;
    auto job = std::make_shared<Job>();
    job->identity = identity_of(image);
    job->order = {std::move(source), form_of(image), "", Language::kCuda, own_registers(image)};
    job->image = std::move(image);
    enqueue(std::move(job));
}

std::string Service::request(std::string_view image, const Target& target) {
    if (!is_fatbin(image) || image.size() > kMostImageBytes || settings_.compiler.empty()) return "";
    std::optional<Indexed> indexed = index_.find(image);
    const std::string code = indexed ? code_for(image, target) : "";
    if (code.empty()) return "";
    for (Indexed::Variant& variant : indexed->variants) {
        if (std::count(variant.codes.begin(), variant.codes.end(), code) == 0) continue;
        auto job = std::make_shared<Job>();
        job->origin = "indexed";
        job->order = {std::move(variant.source), code.starts_with("sm_") ? Form::kCubin : Form::kPtx, code};
        if (job->order.form == Form::kCubin) job->order.registers = own_registers(image, target.architecture);
        job->order.ptx = choose_ptx(image, target.architecture, settings_.ptx_bytes).text;
        job->variables = std::move(indexed->variables);
        // It has the source too, since another smt may make another one of the same program.
        job->identity = digest({"indexed", identity_of(image), encode(job->order)});
        const std::string identity = job->identity;
        if (from_index(identity)) return identity;
        job->image = image;
        enqueue(std::move(job));
        return identity;
    }
    return "";
}

std::string Service::submit_ptx(PtxChoice choice, const Target& target) {
    auto job = std::make_shared<Job>();
    job->order.source.text = std::move(choice.text);
    job->order.registers = std::move(choice.registers);
    job->order.language = Language::kPtx;
    if (!target.text_only) job->order.architecture = fmt::format("sm_{}", target.architecture);
    std::string identity = job->identity = digest({"ptx", encode(job->order)});
    enqueue(std::move(job));
    return identity;
}

void Service::enqueue(JobPointer job) {
    const uint64_t bytes = job->order.source.text.size() + job->image.size();
    std::unique_lock lock(mutex_);
    if (leaving_ || !worth_doing(job->identity)) return;
    if (queued_bytes_ + bytes > kMostQueuedBytes) {
        lock.unlock();
        return say_(fmt::format("{}: not compiled, too many sources wait", title(job->origin, job->order)));
    }
    queued_bytes_ += bytes;
    jobs_[job->identity] = job;
    queue_.push_back(job);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    work_.notify_one();
}

// With mutex_ held. What went wrong with the worker may go right the next time.
bool Service::worth_doing(const std::string& identity) const {
    auto known = jobs_.find(identity);
    return known == jobs_.end() || (known->second->result && !known->second->result->lasting);
}

Service::Answer Service::wait(std::string_view image, std::chrono::milliseconds patience) {
    return may_be_known(image) ? wait_for(identity_of(image), patience) : Answer{};
}

Service::Answer Service::wait_for(const std::string& identity, std::chrono::milliseconds patience) {
    {
        std::unique_lock lock(mutex_);
        if (auto known = jobs_.find(identity); known != jobs_.end()) {
            JobPointer job = known->second;
            done_.wait_for(lock, patience, [&] { return job->result || leaving_; });
            return {job->result ? State::kDone : State::kPending, job->result};
        }
    }
    ResultPointer kept = from_index(identity);
    return {kept ? State::kDone : State::kUnknown, kept};
}

ResultPointer Service::from_index(const std::string& identity) {
    std::optional<std::string> key = cache_.load(index_key(identity));
    std::optional<std::string> bytes = key ? cache_.load(*key) : std::nullopt;
    std::optional<Result> result = bytes ? decode_result(*bytes) : std::nullopt;
    if (!result) return nullptr;
    auto job = std::make_shared<Job>();
    job->identity = identity;
    std::lock_guard lock(mutex_);
    if (auto known = jobs_.find(identity); known != jobs_.end()) return known->second->result;   // meanwhile
    jobs_[identity] = job;
    finish(job, std::move(*result));
    return job->result;
}

void Service::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        if (!work_.wait_for(lock, kIdle, [this] { return leaving_ || !queue_.empty(); })) compiler_.rest();
        work_.wait(lock, [this] { return leaving_ || !queue_.empty(); });
        if (leaving_) return;
        JobPointer job = queue_.front();
        queue_.pop_front();
        lock.unlock();
        const auto began = Clock::now();
        bool from_cache = false;
        Result result = result_of(*job, from_cache);
        const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
        report(*job, result, from_cache, took);   // before anybody loads it
        lock.lock();
        queued_bytes_ -= job->order.source.text.size() + job->image.size();
        finish(job, std::move(result));
        done_.notify_all();
    }
}

// The thread's: may take long.
Result Service::result_of(const Job& job, bool& from_cache) {
    std::string problem;
    const bool compiles = job.order.language == Language::kCuda;   // PTX needs no NVRTC
    const std::string nvrtc = compiles ? compiler_.nvrtc(problem) : "";
    if (!problem.empty()) {
        Result result;
        return result.reason = problem, result;
    }
    const std::string key = key_of(job, nvrtc);
    if (std::optional<std::string> bytes = cache_.load(key)) {
        if (std::optional<Result> kept = decode_result(*bytes)) return from_cache = true, *kept;
    }
    Result result = compiler_.compile(job.order);
    result.language = job.order.language;
    if (!result.image.empty() && compiles) {
        // An image that lacks anything is never loaded in place of the program's own.
        result.reason = missing_from(job.image, result.image);
        if (result.reason.empty()) result.reason = missing_variables(job.variables, result.image);
        if (!result.reason.empty()) result.image.clear();
    }
    if (result.lasting) {
        cache_.store(key, encode(result));
        cache_.store(index_key(job.identity), key);
    }
    return result;
}

std::string Service::key_of(const Job& job, const std::string& nvrtc) const {
    return digest({"result", kFormVersion, nvrtc, job.identity, encode(job.order)});
}

void Service::finish(const JobPointer& job, Result result) {
    job->order = {};
    job->image = {};
    job->result = std::make_shared<const Result>(std::move(result));
    finished_.push_back(job);
    finished_bytes_ += size_of(*job->result);
    while (finished_.size() > 1 && (finished_.size() > kMostFinished || finished_bytes_ > kMostFinishedBytes)) {
        JobPointer oldest = finished_.front();
        finished_.pop_front();
        finished_bytes_ -= size_of(*oldest->result);
        auto known = jobs_.find(oldest->identity);   // another one, where it was done again
        if (known != jobs_.end() && known->second == oldest) jobs_.erase(known);
    }
}

void Service::report(const Job& job, const Result& result, bool from_cache, std::chrono::milliseconds took) {
    size_t managed = 0;
    std::map<std::string, std::pair<size_t, std::string>> refused;   // by reason: how many, and one of them
    for (const Kernel& kernel : result.kernels) {
        if (!kernel.managed.empty()) ++managed;
        else if (auto& [count, name] = refused[kernel.reason]; ++count == 1) name = kernel.name;
    }
    const Order& order = job.order;
    std::string line = fmt::format("{}, {} bytes: {} kernels managed{}, {} refused", title(job.origin, order), order.source.text.size(),
                                   result.image.empty() ? 0 : managed, order.language == Language::kPtx ? " by PTX" : "",
                                   result.kernels.size() - managed);
    for (const auto& [reason, some] : refused)
        line += fmt::format(" ({}{}: {})", some.second, some.first > 1 ? fmt::format(" and {} more", some.first - 1) : "", reason);
    if (!result.reason.empty()) line += "; " + result.reason;
    say_(fmt::format("{}; {} {} ms", line, from_cache ? "kept from before," : "compiled in", took.count()));
}

}  // namespace smt::runtime::jit
