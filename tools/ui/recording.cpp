// A journal that was kept: any part of it, as often as wanted.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "tools/smt/command.h"
#include "tools/ui/query.h"
#include "tools/ui/source.h"
#include "tools/ui/state.h"

namespace smt::tools::ui {

namespace {

using runtime::journal::Reader;
using Json = nlohmann::ordered_json;

bool is_decisions(const std::string& path) {
    std::string line;
    std::ifstream file(path);
    constexpr std::string_view kBegin = "{\"recording\"";
    line.resize(kBegin.size());
    return file.read(line.data(), static_cast<std::streamsize>(line.size())) && line == kBegin;
}

class Recording : public Source {
public:
    explicit Recording(const std::string& path) : name_(std::filesystem::path(path).filename().string()) {
        const Reader reader(path);
        if (!reader.error().empty() && is_decisions(path))
            throw Failure(path +
                          " has decisions alone (SMT_JOURNAL=record): smt replay reads it; smt ui "
                          "wants a journal, KEY.journal of the runtime folder");
        if (!reader.error().empty()) throw Failure(reader.error());
        timeline_.follow(reader);
        if (timeline_.begin_ns() == timeline_.end_ns()) throw Failure(path + " has no launches");
    }

    std::string about() override {
        std::lock_guard lock(mutex_);
        const Json replay{{"file", name_},
                          {"begin", timeline_.begin_ns()},
                          {"end", timeline_.end_ns()},
                          {"clock", timeline_.is_virtual() ? "virtual" : "monotonic"}};
        return Json{{"replay", replay}, {"policies", Json::array()}}.dump(-1, ' ', false,
                                                                          Json::error_handler_t::replace);
    }

    std::string state(const http::Fields& query) override {
        std::lock_guard lock(mutex_);
        const auto within = [&](const char* name, uint64_t usual, uint64_t most) {
            return std::clamp(number_in(query, name).value_or(usual), timeline_.begin_ns(), most);
        };
        Window window;
        window.to = within("to", timeline_.end_ns(), timeline_.end_ns());
        window.from = within("from", window.to, window.to);
        window.over = within("over", window.from, window.to);
        return state_json({timeline_, window, timeline_.multiprocessors(), false, no_status_});
    }

    http::Answer change(const std::string&, const std::string&) override {
        return {.status = 409, .text = "this is a recording: there is no server to change\n"};
    }

private:
    const std::string name_;
    std::mutex mutex_;
    Timeline timeline_{0};
    const std::optional<ServerStatus> no_status_;
};

}  // namespace

std::unique_ptr<Source> make_recording(const std::string& path) { return std::make_unique<Recording>(path); }

}  // namespace smt::tools::ui
