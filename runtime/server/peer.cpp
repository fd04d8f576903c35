#include "runtime/server/peer.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace smt::runtime::server {

using namespace protocol;

namespace {

std::optional<ucred> credentials(int socket) {
    ucred found{};
    socklen_t size = sizeof found;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) return std::nullopt;
    return found;
}

std::vector<gid_t> groups_of(int socket, gid_t first) {
    std::vector<gid_t> all(64);
    socklen_t size = static_cast<socklen_t>(all.size() * sizeof(gid_t));
    int got = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, all.data(), &size);
    if (got != 0 && errno == ERANGE) {
        all.resize(size / sizeof(gid_t));
        got = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, all.data(), &size);
    }
    all.resize(got == 0 ? size / sizeof(gid_t) : 0);
    all.push_back(first);
    return all;
}

bool fits(const std::string& name) { return name.size() < kTenantNameBytes; }

template <size_t n>
void put(char (&field)[n], const std::string& text) {
    std::memset(field, 0, n);
    std::copy_n(text.data(), std::min(text.size(), n - 1), field);
}

std::string weight_text(uint32_t thousandths) { return fmt::format("{:.4g}", thousandths / 1000.0); }

}  // namespace

uid_t user_of(int socket) {
    const std::optional<ucred> found = credentials(socket);
    return found ? found->uid : getuid();
}

std::optional<Peer> Peer::of(int socket, Users* users) {
    const std::optional<ucred> found = credentials(socket);
    if (!found || (!users && found->uid != getuid())) return std::nullopt;
    Peer peer;
    peer.users_ = users;
    peer.user_ = found->uid;
    peer.process_ = found->pid;
    if (!users) return peer;
    peer.prefix_ = users->name_of(found->uid) + "/";
    peer.granted_ = users->granted(found->uid, groups_of(socket, found->gid));
    return peer;
}

std::string Peer::full_name(std::string_view tenant) const {
    const bool is_full =
        tenant.starts_with(prefix_) || (administers() && tenant.find('/') != std::string_view::npos);
    return is_full ? std::string(tenant) : prefix_ + std::string(tenant);
}

std::string Peer::admit(Hello& hello) const {
    hello.limited = 0;
    if (process_ > 0 || users_) hello.pid = process_;  // a container's numbers are other ones
    if (!users_) return "";
    const std::string tenant = prefix_ + std::string(text_in(hello.tenant)), family(text_in(hello.family));
    if (!fits(tenant) || !fits(prefix_ + family))
        return fmt::format("the tenant's name is too long: with the user's, {}, it has at most {} bytes",
                           prefix_, kTenantNameBytes - 1);
    put(hello.tenant, tenant);
    if (!family.empty()) put(hello.family, prefix_ + family);
    if (hello.priority > granted_.priority) {
        hello.priority = granted_.priority;
        hello.limited |= kLimitedPriority;
    }
    const uint32_t weight = hello.weight_thousandths ? hello.weight_thousandths : 1000;
    if (weight > granted_.weight_thousandths) {
        if (hello.weight_thousandths) hello.limited |= kLimitedWeight;
        hello.weight_thousandths = granted_.weight_thousandths;
    }
    // A target gives its tenant a priority (session.cpp), and stops others.
    if ((hello.p99_us || hello.slowdown_thousandths) && granted_.priority < 1) {
        hello.p99_us = 0;
        hello.slowdown_thousandths = 0;
        hello.limited |= kLimitedTarget;
    }
    if (granted_.memory && (hello.memory_limit == 0 || hello.memory_limit > granted_.memory)) {
        if (hello.memory_limit) hello.limited |= kLimitedMemory;
        hello.memory_limit = granted_.memory;
    }
    return "";
}

std::string Peer::lowered(const Hello& hello) {
    std::string all;
    const auto add = [&](uint32_t which, const std::string& what) {
        if (hello.limited & which) all += (all.empty() ? "" : ", ") + what;
    };
    add(kLimitedPriority, fmt::format("priority {}", hello.priority));
    add(kLimitedWeight, "weight " + weight_text(hello.weight_thousandths));
    add(kLimitedMemory, fmt::format("{} MiB of device memory", hello.memory_limit >> 20));
    add(kLimitedTarget, "no target");
    return all.empty() ? "" : "its user is granted less than it asks for: it has " + all;
}

std::string Peer::why_no_terms(const TermsRequest& request) const {
    if (administers()) return "";
    if (request.sets_priority && request.priority > granted_.priority)
        return fmt::format("the highest priority that the administrator grants this user is {}",
                           granted_.priority);
    if (request.weight_thousandths > granted_.weight_thousandths)
        return fmt::format("the largest weight that the administrator grants this user is {}",
                           weight_text(granted_.weight_thousandths));
    return "";
}

std::string Peer::why_no_limit(uint64_t memory) const {
    if (administers() || !granted_.memory || (memory && memory <= granted_.memory)) return "";
    return fmt::format("the administrator grants this user {} MiB of device memory", granted_.memory >> 20);
}

std::string Peer::why_not(std::string_view what) const {
    if (administers()) return "";
    return fmt::format("this is the system's server: only an administrator of it {}", what);
}

}  // namespace smt::runtime::server
