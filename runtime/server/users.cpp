#include "runtime/server/users.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace smt::runtime::server {

namespace {

constexpr size_t kRecordBytes = 1 << 16;  // of a large group, with its members

bool is_number(const std::string& name) {
    return std::all_of(name.begin(), name.end(), [](char each) { return each >= '0' && each <= '9'; });
}

std::string account_name(uid_t user) {
    std::vector<char> text(kRecordBytes);
    passwd record{};
    passwd* found = nullptr;
    if (getpwuid_r(user, &record, text.data(), text.size(), &found) == 0 && found &&
        !is_number(found->pw_name))
        return found->pw_name;
    return std::to_string(user);
}

std::string group_name(gid_t number) {
    std::vector<char> text(kRecordBytes);
    group record{};
    group* found = nullptr;
    if (getgrgid_r(number, &record, text.data(), text.size(), &found) == 0 && found) return found->gr_name;
    return "";
}

}  // namespace

std::string Users::name_of(uid_t user) {
    {
        std::lock_guard lock(mutex_);
        if (const auto found = names_.find(user); found != names_.end()) return found->second;
    }
    const std::string name = account_name(user);
    std::lock_guard lock(mutex_);
    return names_.emplace(user, name).first->second;
}

Granted Users::granted(uid_t user, const std::vector<gid_t>& groups) {
    if (user == 0)
        return {0, std::numeric_limits<uint32_t>::max(), std::numeric_limits<int32_t>::max(),
                std::numeric_limits<uint32_t>::max(), true};
    settings::Grant grant;
    for (const std::string& name : {name_of(user), std::to_string(user)})
        if (const auto found = grants_.users.find(name); found != grants_.users.end())
            grant.add(found->second, false);
    settings::Grant of_groups;
    for (const gid_t each : grants_.groups.empty() ? std::vector<gid_t>{} : groups)
        for (const std::string& name : {group_name(each), std::to_string(each)})
            if (const auto found = grants_.groups.find(name); found != grants_.groups.end())
                of_groups.add(found->second, true);
    grant.add(of_groups, false);
    grant.add(grants_.everyone, false);
    return {grant.memory.value_or(0), grant.sessions.value_or(settings::kGrantedSessions),
            grant.priority.value_or(settings::kGrantedPriority),
            grant.weight_thousandths.value_or(settings::kGrantedWeight), grant.administers.value_or(false)};
}

Users::Place::~Place() {
    std::lock_guard lock(users_.mutex_);
    const auto found = users_.sessions_.find(user_);
    if (--found->second == 0) users_.sessions_.erase(found);
    users_.left_.notify_all();
}

std::unique_ptr<Users::Place> Users::enter(uid_t user, uint32_t most, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    const auto has_room = [&] {
        const auto found = sessions_.find(user);
        return (found == sessions_.end() ? 0 : found->second) < most;
    };
    if (!left_.wait_for(lock, patience, has_room)) return nullptr;
    auto place = std::make_unique<Place>(*this, user);
    ++sessions_[user];
    return place;
}

MemoryAccountPointer Users::account_of(uid_t user, uint64_t limit) {
    std::lock_guard lock(mutex_);
    std::erase_if(accounts_, [](const auto& each) { return each.second.expired(); });
    MemoryAccountPointer account = accounts_[user].lock();
    if (!account) accounts_[user] = account = std::make_shared<MemoryAccount>(limit);
    account->set_limit(limit);
    return account;
}

}  // namespace smt::runtime::server
