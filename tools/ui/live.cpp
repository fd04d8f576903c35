// A server that runs: its journal as it grows, and its answer once a second.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>

#include "runtime/protocol/server_key.h"
#include "runtime/schedule/policy.h"
#include "tools/smt/command.h"
#include "tools/smt/places.h"
#include "tools/ui/changes.h"
#include "tools/ui/query.h"
#include "tools/ui/source.h"
#include "tools/ui/state.h"

namespace smt::tools::ui {

namespace {

using runtime::journal::Reader;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kKeepNs = 15'000'000'000, kLongestFrame = 2'000'000'000, kFirstFrame = 100'000'000;
constexpr uint64_t kFiguresNs = 5'000'000'000, kLongestFigures = 10'000'000'000;
// A frame ends some time ago, by when kernels have ended and are in the journal: the time that the longest
// one took, on the server's clock at least and at most these.
constexpr uint64_t kLateNs = 250'000'000, kLatestNs = 2'000'000'000;
constexpr std::chrono::seconds kBetweenQuestions{1};

ino_t identity(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

class Live : public Source {
public:
    explicit Live(const std::optional<std::string>& key) : wanted_(key) {}

    std::string about() override {
        return nlohmann::ordered_json{{"replay", nullptr}, {"policies", runtime::schedule::policy_names()}}
            .dump();
    }

    std::string state(const http::Fields& query) override {
        std::lock_guard lock(mutex_);
        if (Clock::now() >= ask_at_) ask();
        read();
        const int multiprocessors =
            status_ ? static_cast<int>(status_->server.multiprocessors) : timeline_.multiprocessors();
        return state_json({timeline_, window(query), multiprocessors, true, status_});
    }

    http::Answer change(const std::string& what, const std::string& wish) override {
        std::string key;
        {
            std::lock_guard lock(mutex_);
            ask_at_ = {};
            key = key_;
        }
        if (key.empty()) return {.status = 409, .text = "no server is running\n"};
        return carry_out(key, what, wish);
    }

private:
    // Stays with a server while that answers. Strict tenants' servers are chosen by key alone.
    void ask() {
        ask_at_ = Clock::now() + kBetweenQuestions;
        status_ = key_.empty() ? std::nullopt : answer_of(key_);
        if (status_) return;
        std::vector<std::string> keys = wanted_ ? std::vector{*wanted_} : keys_with(".sock");
        if (!wanted_) std::erase_if(keys, protocol::is_strict_key);
        for (const std::string& key : keys) {
            status_ = answer_of(key);
            if (status_) return choose(key);
        }
        if (!key_.empty()) return;
        if (!wanted_) keys = keys_with(".journal");  // one that has left
        if (!keys.empty()) choose(keys.front());
    }

    static std::optional<ServerStatus> answer_of(const std::string& key) {
        try {
            return ask_tenants(key);
        } catch (const Failure&) {
            return std::nullopt;
        }
    }

    void choose(const std::string& key) {
        if (key == key_) return;
        key_ = key;
        journal_ = 0;
    }

    // A server that starts again makes another file.
    void read() {
        if (key_.empty()) return;
        const std::string path = path_of(key_, ".journal");
        const ino_t file = identity(path);
        if (file != journal_ && file != 0) {
            auto reader = std::make_unique<Reader>(path);
            if (!reader->error().empty()) return;  // it is just being made
            reader_ = std::move(reader);
            journal_ = file;
            timeline_.restart();
        }
        if (reader_) timeline_.follow(*reader_);
    }

    Window window(const http::Fields& query) const {
        const uint64_t begin = timeline_.begin_ns();
        const uint64_t end = timeline_.end_ns(), longest = timeline_.longest_ns();
        const uint64_t to =
            timeline_.is_virtual()
                ? end - std::min(longest, (end - begin) / 2)
                : std::max(begin, runtime::journal::now_ns() - std::clamp(longest, kLateNs, kLatestNs));
        const auto back = [&](const char* name, uint64_t usual, uint64_t most) {
            const uint64_t from = number_in(query, name).value_or(~0ull);
            const uint64_t at = from <= to ? from : to - std::min(to, usual);
            return std::max({at, begin, to - std::min(to, most)});
        };
        return {back("over", kFiguresNs, kLongestFigures), back("from", kFirstFrame, kLongestFrame), to};
    }

    const std::optional<std::string> wanted_;
    std::mutex mutex_;
    std::string key_;  // empty: no server ever ran
    Clock::time_point ask_at_{};
    std::optional<ServerStatus> status_;
    std::unique_ptr<Reader> reader_;
    ino_t journal_ = 0;
    Timeline timeline_{kKeepNs};
};

}  // namespace

std::unique_ptr<Source> make_live(const std::optional<std::string>& key) {
    return std::make_unique<Live>(key);
}

}  // namespace smt::tools::ui
