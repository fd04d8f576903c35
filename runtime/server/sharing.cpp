#include "runtime/server/sharing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/server/memory_file.h"

namespace smt::runtime::server {

std::string family_of(const protocol::Hello& hello) {
    const std::string family(hello.family, strnlen(hello.family, sizeof hello.family));
    if (!family.empty()) return "family " + family;
    return "tenant " + std::string(hello.tenant, strnlen(hello.tenant, sizeof hello.tenant));
}

Sharing::~Sharing() {
    for (const auto& [key, entry] : entries_)
        if (entry.file >= 0) close(entry.file);
}

Sharing::Key Sharing::key_of(const Token& token) {
    Key key;
    std::copy(std::begin(token.bytes), std::end(token.bytes), key.begin());
    return key;
}

// The descriptor's copies share one open description with a lock. The kernel drops the lock with the last
// one.
bool Sharing::closed(const Entry& entry) {
    return entry.file >= 0 && flock(entry.file, LOCK_EX | LOCK_NB) == 0;
}

std::optional<Sharing::Token> Sharing::add(protocol::SharedKind kind, const std::string& family,
                                           uint32_t session, const Object& object, bool held) {
    Token token;
    std::lock_guard lock(mutex_);
    const auto same = [&](const Entry& entry) {
        return !entry.object.owner_before(object) && !object.owner_before(entry.object);
    };
    for (const auto& [key, entry] : entries_) {
        if (held) break;  // each descriptor has an entry of its own, which ends with it
        if (entry.session != session || entry.kind != kind || !same(entry)) continue;
        std::copy(key.begin(), key.end(), token.bytes);
        return token;
    }
    if (getrandom(token.bytes, sizeof token.bytes, 0) != sizeof token.bytes) return std::nullopt;
    entries_[key_of(token)] = {kind, family, session, object, held ? object : nullptr, -1};
    return token;
}

bool Sharing::watch(const Token& token, uint32_t session, int file) {
    if (!is_memory_file(file)) return false;
    const std::string path = fmt::format("/proc/self/fd/{}", file);
    const int own = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (own < 0) return false;
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(key_of(token));
    const bool fits = found != entries_.end() && found->second.session == session && found->second.held &&
                      found->second.file < 0;
    if (fits)
        found->second.file = own;
    else
        close(own);
    return fits;
}

Sharing::Found Sharing::find(protocol::SharedKind kind, const Token& token, const std::string& family) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(key_of(token));
    if (found == entries_.end() || found->second.kind != kind) return {};
    const Entry& entry = found->second;
    if (entry.family != family) {
        refused_.fetch_add(1, std::memory_order_relaxed);
        return {Answer::kForeign, entry.session, nullptr};
    }
    Object object = entry.object.lock();
    return object ? Found{Answer::kFound, entry.session, std::move(object)} : Found{};
}

void Sharing::sweep() {
    std::vector<Object> let_go;  // destroyed without the lock
    std::lock_guard lock(mutex_);
    for (auto each = entries_.begin(); each != entries_.end();) {
        Entry& entry = each->second;
        const bool over = entry.held ? closed(entry) : entry.object.expired();
        if (!over) {
            ++each;
            continue;
        }
        if (entry.file >= 0) close(entry.file);
        let_go.push_back(std::move(entry.held));
        each = entries_.erase(each);
    }
}

void Sharing::ended(uint32_t session) {
    std::vector<Object> let_go;
    {
        std::lock_guard lock(mutex_);
        for (auto& [key, entry] : entries_)
            if (entry.session == session && entry.held && entry.file < 0)
                let_go.push_back(std::exchange(entry.held, nullptr));
    }
    let_go.clear();
    sweep();
}

bool Sharing::holds_for(uint32_t session) const {
    std::lock_guard lock(mutex_);
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const auto& each) { return each.second.session == session && each.second.held; });
}

size_t Sharing::size() const {
    std::lock_guard lock(mutex_);
    return entries_.size();
}

}  // namespace smt::runtime::server
