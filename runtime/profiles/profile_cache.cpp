#include "runtime/profiles/profile_cache.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "runtime/jit/digest.h"
#include "runtime/jit/settings.h"
#include "runtime/settings/read.h"

namespace smt::runtime::profiles {

namespace {

constexpr size_t kEndBytes = 512u << 10;  // of an image, from each end

}  // namespace

std::string store_path() {
    if (settings::is(settings::Id::kProfiles, "none")) return "";
    if (const char* chosen = settings::c_text_of(settings::Id::kProfiles)) return chosen;
    const std::string folder = jit::cache_folder();
    return folder.empty() ? "" : folder + "/profiles.db";
}

std::string image_identity(std::string_view image) {
    if (image.size() <= 2 * kEndBytes) return jit::digest({"image", image});
    return jit::digest({"ends", std::to_string(image.size()), image.substr(0, kEndBytes),
                        image.substr(image.size() - kEndBytes)});
}

ProfileCache::ProfileCache(std::string path, DeviceFacts facts, Note note, std::chrono::milliseconds every)
    : facts_(std::move(facts)),
      note_(std::move(note)),
      every_(every),
      kept_(!path.empty()),
      store_(std::move(path), note_) {}

ProfileCache::~ProfileCache() {
    {
        std::lock_guard lock(mutex_);
        ending_ = write_ = true;
        wake_.notify_all();
    }
    thread_.join();
}

std::shared_ptr<KnownKernel> ProfileCache::open(const std::string& symbol, const std::string& image) {
    if (!kept_ || image.empty()) return nullptr;
    std::unique_lock lock(mutex_);
    std::shared_ptr<KnownKernel>& kernel = kernels_[{symbol, image}];
    if (kernel) {
        met_again_ = true;
        wake_.notify_one();
        return kernel;
    }
    const auto fresh = kernel = std::make_shared<KnownKernel>(symbol, image, facts_);
    fresh_.push_back(fresh);
    if (!thread_.joinable() && !failed_) {
        const std::string why = thread_.start(
            {"profiles", ""}, [this] { run(); }, [this](const std::string& what) { give_up(what); });
        lock.unlock();
        if (!why.empty()) give_up(why);
    }
    wake_.notify_one();
    return fresh;
}

void ProfileCache::write_soon() {
    std::lock_guard lock(mutex_);
    write_ = true;
    wake_.notify_one();
}

void ProfileCache::wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] {
        return failed_ || !thread_.joinable() || (fresh_.empty() && !met_again_ && !write_ && !busy_);
    });
}

void ProfileCache::run() {
    std::unique_lock lock(mutex_);
    while (!failed_) {
        const auto asked = [&] { return !fresh_.empty() || met_again_ || write_ || ending_; };
        if (every_.count() == 0)
            wake_.wait(lock, asked);
        else if (!wake_.wait_for(lock, every_, asked))
            write_ = true;
        const std::vector<std::shared_ptr<KnownKernel>> fresh = std::exchange(fresh_, {});
        const bool again = std::exchange(met_again_, false), writes = std::exchange(write_, false);
        busy_ = true;
        const bool last = ending_;
        lock.unlock();
        const bool stale = !last && (!version_ || again) && others_wrote();  // the first time only asks
        for (const auto& kernel : fresh) look_up(*kernel);
        if (writes || stale) {
            for (const auto& kernel : all()) {
                const bool wrote = writes && write(*kernel);
                if ((wrote || stale) && !last) look_up(*kernel);
            }
        }
        lock.lock();
        busy_ = false;
        done_.notify_all();
        if (last) break;
    }
}

std::vector<std::shared_ptr<KnownKernel>> ProfileCache::all() {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<KnownKernel>> kernels;
    for (const auto& [name, kernel] : kernels_) kernels.push_back(kernel);
    return kernels;
}

void ProfileCache::look_up(KnownKernel& kernel) {
    auto found = store_.list({kernel.symbol(), kernel.image(), facts_.name});
    if (auto* problem = std::get_if<profiler::Problem>(&found)) return give_up(problem->text);
    kernel.know(std::move(std::get<std::vector<profiler::Profile>>(found)));
}

// Since the last time.
bool ProfileCache::others_wrote() {
    auto found = store_.version();
    if (auto* problem = std::get_if<profiler::Problem>(&found)) {
        give_up(problem->text);
        return false;
    }
    const std::optional<int64_t> before = std::exchange(version_, std::get<int64_t>(found));
    return before && before != version_;
}

bool ProfileCache::write(KnownKernel& kernel) {
    const std::vector<profiler::Profile> news = kernel.take_news();
    for (const profiler::Profile& each : news) {
        if (auto problem = store_.record(each)) give_up(problem->text);
    }
    return !news.empty();
}

// Said once: profiles are for better decisions, and a server without them serves as well.
void ProfileCache::give_up(const std::string& why) {
    std::lock_guard lock(mutex_);
    if (!failed_) note_("profiles of kernels are neither looked up nor kept: " + why);
    failed_ = true;
    done_.notify_all();
}

}  // namespace smt::runtime::profiles
