// See control.h.
#include "tools/smt/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <sstream>

#include "runtime/journal/printable.h"
#include "runtime/settings/config.h"
#include "runtime/settings/read.h"
#include "tools/smt/command.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

constexpr time_t kAnswerTimeoutSeconds = 5;

// Ends the text, and leaves nothing in it that a terminal would take for a command.
template <size_t n>
void terminate(char (&text)[n]) {
    text[n - 1] = 0;
    const std::string shown = runtime::journal::printable(text);
    std::strncpy(text, shown.c_str(), n - 1);
}

// A connection on which one question is asked.
class Question {
public:
    // seconds: until the server counts as one that does not answer; 0: never.
    explicit Question(const std::string& key, time_t seconds = kAnswerTimeoutSeconds)
        : path_(path_of(key, ".sock")), log_(path_of(key, ".log")) {
        timeval timeout{seconds, 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
        ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    }
    ~Question() {
        if (socket_ >= 0) ::close(socket_);
    }
    Question(const Question&) = delete;
    Question& operator=(const Question&) = delete;

    // False: no server listens.
    template <typename Request>
    bool ask(const Request& request) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (path_.size() >= sizeof(address.sun_path))
            throw Failure(path_ + " is too long for a socket's name");
        std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
        if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
            if (errno == ENOENT || errno == ECONNREFUSED) return false;
            throw Failure("cannot connect to " + path_ + ": " + std::strerror(errno));
        }
        if (::send(socket_, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request)) {
            if (errno == EPIPE || errno == ECONNRESET) return false;  // it has left meanwhile
            throw Failure("cannot ask the server of " + path_ + ": " + std::strerror(errno));
        }
        return true;
    }

    // False: it hung up, as it is leaving.
    template <typename Reply>
    bool hear(Reply& reply) {
        const protocol::ControlKind kind = reply.kind;
        protocol::Welcome refusal{};
        const ssize_t next = ::recv(socket_, &refusal, sizeof(refusal), MSG_PEEK);
        if (next == sizeof(refusal) && refusal.kind == protocol::ControlKind::kWelcome &&
            kind != refusal.kind) {
            terminate(refusal.message);
            throw Failure("the server of " + path_ + " refuses: " + refusal.message);
        }
        const ssize_t got = ::recv(socket_, &reply, sizeof(reply), 0);
        if (got == 0 || (got < 0 && errno == ECONNRESET)) return false;
        if (got < 0 && errno == EAGAIN)
            throw Failure("the server of " + path_ + " does not answer; see " + log_);
        if (got != sizeof(reply) || reply.kind != kind)
            throw Failure("the server of " + path_ +
                          " answers in a way this smt does not know: another version of it?");
        return true;
    }

private:
    const std::string path_, log_;
    const int socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
};

bool hear_status(Question& question, protocol::StatusReply& reply) {
    if (!question.hear(reply)) return false;
    terminate(reply.device);
    terminate(reply.policy);
    return true;
}

}  // namespace

std::optional<protocol::StatusReply> ask_server(const std::string& key, protocol::ControlKind kind) {
    Question question(key);
    protocol::StatusRequest request;
    request.kind = kind;
    protocol::StatusReply reply;
    if (!question.ask(request) || !hear_status(question, reply)) return std::nullopt;
    return reply;
}

bool wait_for_end(pid_t server, std::chrono::milliseconds timeout) {
    const int file =
        static_cast<int>(::syscall(SYS_pidfd_open, server, 0));  // glibc 2.36 declares pidfd_open for C alone
    if (file < 0) return errno == ESRCH;
    pollfd ended{file, POLLIN, 0};
    int found = 0;
    do found = ::poll(&ended, 1, static_cast<int>(timeout.count()));
    while (found < 0 && errno == EINTR);
    ::close(file);
    return found > 0;
}

std::optional<ServerStatus> ask_tenants(const std::string& key) {
    Question question(key);
    protocol::StatusRequest request;
    request.kind = protocol::ControlKind::kTenants;
    ServerStatus status;
    status.key = key;
    if (!question.ask(request) || !hear_status(question, status.server)) return std::nullopt;
    for (uint32_t i = 0; i < status.server.tenants; ++i) {
        protocol::TenantStatus tenant;
        if (!question.hear(tenant)) return std::nullopt;
        terminate(tenant.tenant);
        terminate(tenant.program);
        terminate(tenant.waits_for);
        status.tenants.push_back(tenant);
    }
    return status;
}

std::optional<protocol::DeviceReply> ask_device(const std::string& key) {
    Question question(key);
    protocol::StatusRequest request;
    request.kind = protocol::ControlKind::kDevice;
    protocol::DeviceReply reply;
    if (!question.ask(request) || !question.hear(reply) || !reply.ok) return std::nullopt;
    terminate(reply.name);
    return reply;
}

std::vector<std::string> ask_differences(const std::string& key, const std::string& tenant) {
    protocol::SettingsRequest request;
    std::strncpy(request.tenant, tenant.c_str(), sizeof(request.tenant) - 1);
    std::string wanted;
    for (const settings::Setting& setting : settings::kSettings) {
        if (!settings::is_servers(setting)) continue;
        const std::string value(settings::text_of(setting)),
            line = settings::key_of(setting) + "=" + value + "\n";
        if (!value.empty() && value.find('\n') == std::string::npos &&
            wanted.size() + line.size() < sizeof(request.settings))
            wanted += line;
    }
    std::vector<std::string> differences;
    if (wanted.empty()) return differences;
    std::memcpy(request.settings, wanted.c_str(), wanted.size() + 1);
    Question question(key);
    protocol::SettingsReply reply;
    if (!question.ask(request) || !question.hear(reply)) return differences;
    reply.differences[sizeof(reply.differences) - 1] = 0;
    std::istringstream lines(reply.differences);
    for (std::string line; std::getline(lines, line);)
        differences.push_back(runtime::journal::printable(line));
    return differences;
}

void at_servers(const std::function<bool(const std::string& key)>& ask) {
    bool any = false;
    for (const std::string& key : keys_with(".sock")) any |= ask(key);
    if (!any) throw Failure("no server is running (looked in " + runtime_directory() + ")");
}

std::optional<protocol::ChangeReply> ask_for_policy(const std::string& key, const std::string& name) {
    Question question(key);
    protocol::PolicyRequest request;
    if (name.size() >= sizeof(request.policy)) throw Misuse("there is no policy of so long a name");
    std::memcpy(request.policy, name.c_str(), name.size() + 1);
    protocol::ChangeReply reply;
    if (!question.ask(request) || !question.hear(reply)) return std::nullopt;
    terminate(reply.message);
    return reply;
}

std::optional<protocol::ChangeReply> ask_for_memory_limit(const std::string& key, const std::string& tenant,
                                                          uint64_t limit) {
    Question question(key);
    protocol::MemoryLimitRequest request;
    if (tenant.size() >= sizeof(request.tenant)) throw Misuse("there is no tenant of so long a name");
    request.limit = limit;
    std::memcpy(request.tenant, tenant.c_str(), tenant.size() + 1);
    protocol::ChangeReply reply;
    if (!question.ask(request) || !question.hear(reply)) return std::nullopt;
    terminate(reply.message);
    return reply;
}

std::optional<protocol::ChangeReply> ask_for_terms(const std::string& key, const std::string& tenant,
                                                   const Terms& terms) {
    Question question(key);
    protocol::TermsRequest request;
    if (tenant.size() >= sizeof(request.tenant)) throw Misuse("there is no tenant of so long a name");
    std::memcpy(request.tenant, tenant.c_str(), tenant.size() + 1);
    request.sets_priority = terms.priority.has_value();
    request.priority = terms.priority.value_or(0);
    if (terms.weight) request.weight_thousandths = static_cast<uint32_t>(std::lround(*terms.weight * 1000));
    protocol::ChangeReply reply;
    if (!question.ask(request) || !question.hear(reply)) return std::nullopt;
    terminate(reply.message);
    return reply;
}

std::optional<protocol::SuspendReply> ask_to_suspend(const std::string& key,
                                                     const protocol::SuspendRequest& request) {
    Question question(key, 0);
    protocol::SuspendReply reply;
    if (!question.ask(request) || !question.hear(reply)) return std::nullopt;
    terminate(reply.message);
    return reply;
}

}  // namespace smt::tools
