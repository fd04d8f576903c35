#include "runtime/server/repeats.h"

#include <algorithm>

namespace smt::runtime::server {

namespace {

constexpr size_t kShapeBytes = 160;

std::string shape_of(std::string_view line) {
    std::string shape;
    for (const char each : line.substr(0, kShapeBytes)) {
        const bool digit = each >= '0' && each <= '9';
        if (!digit)
            shape += each;
        else if (shape.empty() || shape.back() != '#')
            shape += '#';
    }
    return shape;
}

}  // namespace

bool Repeats::shown(uint32_t session, std::string_view line, uint64_t now_ns) {
    const std::string shape = windows_.size() < kMostKinds ? shape_of(line) : "";
    Window& own = windows_[{session, shape}];
    Window* all = session != 0 && !shape.empty() ? &windows_[{session, ""}] : nullptr;
    const uint32_t most = session == 0 || shape.empty() ? kMostOfSession : kMostOfShape;
    if (own.shown == 0) own.begin = now_ns;
    if (all && all->shown == 0) all->begin = now_ns;
    const bool room = own.shown < most && (!all || all->shown < kMostOfSession);
    if (room) {
        ++own.shown;
        if (all) ++all->shown;
        return true;
    }
    Window& full = own.shown < most ? *all : own;
    if (own.shown == 0) windows_.erase({session, shape});  // counted in the session's window instead
    ++full.left;
    full.last = line;
    return false;
}

std::vector<Repeats::Left> Repeats::over(uint64_t now_ns) {
    std::vector<Left> all;
    for (auto each = windows_.begin(); each != windows_.end();) {
        Window& window = each->second;
        if (now_ns - window.begin < kWindow) {
            ++each;
            continue;
        }
        if (window.left) all.push_back({each->first.first, window.left, std::move(window.last)});
        each = windows_.erase(each);
    }
    return all;
}

}  // namespace smt::runtime::server
