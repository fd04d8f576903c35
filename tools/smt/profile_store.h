// The store of profiles as `smt profile` asks it.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "profiler/store/store.h"
#include "tools/smt/command.h"

namespace smt::tools {

template <class Value>
Value take(profiler::Result<Value> result) {
    if (auto* problem = std::get_if<profiler::Problem>(&result)) throw Failure(problem->text);
    return std::move(std::get<Value>(result));
}

// The profiles that have changed since this was made: of the kernels that have run since.
class ChangedProfiles {
public:
    explicit ChangedProfiles(profiler::Store& store) : store_(store) {
        for (profiler::Profile& each : take(store_.list())) before_.emplace(each.key, std::move(each));
    }
    std::vector<profiler::Profile> profiles() {
        std::vector<profiler::Profile> all = take(store_.list());
        std::erase_if(all, [&](const profiler::Profile& each) {
            if (keys_.contains(each.key)) return false;
            const auto found = before_.find(each.key);
            const bool same = found != before_.end() && found->second == each;
            if (!same) keys_.insert(each.key);
            return same;
        });
        return all;
    }
    // Of those that profiles() has told.
    const std::set<profiler::Key>& keys() const { return keys_; }

private:
    profiler::Store& store_;
    std::map<profiler::Key, profiler::Profile> before_;
    std::set<profiler::Key> keys_;
};

}  // namespace smt::tools
