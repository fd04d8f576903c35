#include "runtime/server/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "runtime/journal/journal.h"
#include "runtime/server/log.h"
#include "runtime/server/process.h"
#include "runtime/server/server.h"
#include "runtime/server/takeover/standby.h"
#include "runtime/settings/read.h"

namespace smt::runtime::server {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr int kTickMs = 200;                    // period of Server::tick() and of time_to_leave()
constexpr uint64_t kWindUp = 10 * kSecond;      // time that sessions have to end
constexpr uint64_t kFaultGrace = 5 * kSecond;   // time in which programs can see the fault
constexpr size_t kMostConnections = 1024;       // one thread each: programs and queries
constexpr long kMostOfOneUser = 256;            // of a system's server
constexpr long kMostSilent = 128;               // silent ones: beyond it the oldest is closed
constexpr uint64_t kRefusalLife = 5 * kSecond;  // how long a server without a device runs to report it

constexpr uint64_t kUnusedLife = 120 * kSecond;  // of a strict tenant's server that got no program

uint64_t idle_limit(const Server* server) {
    if (!server) return kRefusalLife;
    if (server->serves_one_tenant()) return kUnusedLife;
    return settings::number_of(settings::Id::kIdleSeconds) * kSecond;
}

}  // namespace

Listener::Listener(const Files& files, Server* server, std::string refusal) : files_(files) {
    owner_.server = server;
    owner_.refusal = std::move(refusal);
    owner_.ended = [this] { wake(); };
    owner_.stop = [this] { stop_.store(true), wake(); };
    owner_.stop_if_idle = [this] { stop_if_idle_.store(true), wake(); };
    idle_limit_ns_ = idle_limit(server);
}

Listener::~Listener() {
    connections_.clear();
    for (int file : {poll_, listen_, signals_, event_, spare_}) {
        if (file >= 0) close(file);
    }
}

bool Listener::open(std::string& error) {
    auto fail = [&](const char* what) {
        error = fmt::format("{} {}: {}", what, files_.socket, std::strerror(errno));
        return false;
    };
    listen_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    // It gets its name when it listens. A socket of the server before stays until then (close_door()).
    std::string made = files_.socket;
    made.back() = '~';
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, made.c_str(), sizeof address.sun_path - 1);
    unlink(made.c_str());  // of a server that crashed: this process holds the lock
    mode_t mask = umask(owner_.users ? 0117 : 0177);
    bool bound = listen_ >= 0 && bind(listen_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    umask(mask);
    if (!bound) return fail("cannot bind");
    if (owner_.users && chown(made.c_str(), static_cast<uid_t>(-1), files_.group) != 0)
        return fail("cannot give to its folder's group");
    if (listen(listen_, 128) != 0) return fail("cannot listen on");
    if (rename(made.c_str(), files_.socket.c_str()) != 0) return fail("cannot name");
    return watch(error);
}

bool Listener::go_on(int listening, std::string& error) {
    listen_ = listening;
    return watch(error);
}

bool Listener::watch(std::string& error) {
    auto fail = [&](const char* what) {
        error = fmt::format("{} {}: {}", what, files_.socket, std::strerror(errno));
        return false;
    };
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    poll_ = epoll_create1(EPOLL_CLOEXEC);
    spare_ = fcntl(event_, F_DUPFD_CLOEXEC, 0);
    for (int file : {listen_, signals_, event_}) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = file;
        if (epoll_ctl(poll_, EPOLL_CTL_ADD, file, &event) != 0) return fail("cannot poll");
    }
    return true;
}

void Listener::wake() {
    uint64_t one = 1;
    if (write(event_, &one, sizeof one) < 0) return;  // full: the listener is woken already
}

bool Listener::run() {
    idle_since_ns_ = journal::now_ns();
    while (!time_to_leave()) {
        try {
            wait(connections_.empty() ? 1000 : kTickMs);
            reap();
            if (owner_.server) owner_.server->tick();
            if (standby_ && owner_.server && !handed_over_) tick_standby();
            if (standby_ && owner_.server && owner_.server->holds()) hand_over(*standby_);
        } catch (const std::exception& error) {  // probably out of memory: existing sessions continue
            log_line(error.what());
            usleep(10'000);
        }
    }
    close_door();
    return wind_up();
}

void Listener::tick_standby() {
    const Standstill::Calls calls(owner_.server->standstill(), Standstill::kSlow);
    standby_->tick(*owner_.server, listen_, lock_);
}

void Listener::wait(int milliseconds) {
    epoll_event events[4];
    int count = epoll_wait(poll_, events, 4, milliseconds);
    for (int i = 0; i < count; ++i) {
        if (events[i].data.fd == listen_) {
            accept_all();
        } else if (events[i].data.fd == event_) {
            uint64_t counter = 0;
            if (read(event_, &counter, sizeof counter) < 0) continue;
        } else {
            signalfd_siginfo signal;
            if (read(signals_, &signal, sizeof signal) == sizeof signal) stop_.store(true);
        }
    }
}

void Listener::accept_all() {
    while (true) {
        int socket = accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket < 0) {
            const bool no_files = errno == EMFILE || errno == ENFILE;
            if (no_files) refuse_one();
            // What could not be refused stays in the queue. The sleep avoids a busy loop.
            if (no_files || errno == ENOMEM) usleep(10'000);
            return;
        }
        take(socket);
    }
}

void Listener::refuse_one() {
    if (spare_ >= 0) close(std::exchange(spare_, -1));
    if (const int socket = accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC); socket >= 0)
        Connection(owner_, socket)
            .turn_away(
                fmt::format("the server can open no more files, of which each program needs some: it may "
                            "open {} (RLIMIT_NOFILE)",
                            file_limit()));
    spare_ = fcntl(event_, F_DUPFD_CLOEXEC, 0);
}

void Listener::take(int socket) {
    std::unique_ptr<Connection> connection;
    try {
        connections_.reserve(connections_.size() + 1);
        connection = std::make_unique<Connection>(owner_, socket);
    } catch (...) {
        close(socket);
        throw;
    }
    const auto silent = [](const std::unique_ptr<Connection>& each) {
        return each->silent() && !each->ended();
    };
    if (std::count_if(connections_.begin(), connections_.end(), silent) >= kMostSilent)
        (*std::find_if(connections_.begin(), connections_.end(), silent))->hang_up();
    std::string why = why_not_taken(*connection);
    if (why.empty()) why = connection->start();
    if (why.empty()) {
        connections_.push_back(std::move(connection));
    } else {
        connection->turn_away(why);
    }
}

std::string Listener::why_not_taken(const Connection& connection) const {
    if (connections_.size() >= kMostConnections)
        return fmt::format("the server has {} connections, the most that it takes", kMostConnections);
    const auto same_user = [user = connection.user()](const auto& each) { return each->user() == user; };
    if (owner_.users && std::count_if(connections_.begin(), connections_.end(), same_user) >= kMostOfOneUser)
        return fmt::format("this user has {} connections to the server, the most that it takes",
                           kMostOfOneUser);
    return "";
}

void Listener::take(const protocol::Hello& hello, int socket, Session::Taken taken) {
    const auto commit = taken.commit;
    auto connection = std::make_unique<Connection>(owner_, socket);
    const std::string why = connection->start_taken(hello, std::move(taken));
    if (why.empty()) return connections_.push_back(std::move(connection));
    commit(why);
}

// The sessions that another process has are not touched any more: their sockets are its own now.
void Listener::hand_over(Standby& standby) {
    Server& server = *owner_.server;
    const HandedOver result = standby.hand_over(server, listen_, lock_);
    handed_over_ = result.server;
    if (handed_over_) {
        epoll_ctl(poll_, EPOLL_CTL_DEL, listen_, nullptr);  // closing does not: another process has it open
        close(listen_);
        listen_ = -1;
    }
    for (int socket : result.sockets) {
        const auto found = std::find_if(connections_.begin(), connections_.end(),
                                        [&](const auto& each) { return each->socket() == socket; });
        if (found == connections_.end()) continue;
        left_.push_back(std::move(*found));
        connections_.erase(found);
    }
}

void Listener::reap() {
    std::erase_if(connections_, [](const std::unique_ptr<Connection>& each) { return each->ended(); });
}

bool Listener::time_to_leave() {
    uint64_t now = journal::now_ns();
    uint64_t stuck = owner_.server ? owner_.server->stuck() : 0;
    bool busy = connections_.size() > stuck;
    if (busy) idle_since_ns_ = now;
    if (stop_.load()) return true;
    if (!busy && stop_if_idle_.load()) return true;
    if (owner_.server && owner_.server->fatal() != CUDA_SUCCESS) {
        // What does not end takes the GPU from the programs that go on elsewhere.
        if (owner_.server->context_lives() && !owner_.server->holds()) return true;
        if (!busy || now - owner_.server->fatal_since_ns() > kFaultGrace) return true;
    }
    // The memory of a stuck session is freed when the process exits, as no other session is left.
    if (!busy && (stuck || (owner_.server && owner_.server->keeps()))) return true;
    if (!busy && owner_.server && owner_.server->serves_one_tenant() && owner_.server->served_any())
        return true;
    return !busy && idle_limit_ns_ && now - idle_since_ns_ >= idle_limit_ns_;
}

// From here on a new client finds no socket and starts the next server, which waits for this server's lock.
// The socket of a system's server stays, unless it was told to stop: clients are refused there and wait for
// the next one, and none starts a server of its own beside the grants. Clients in the accept queue are
// disconnected and try again.
void Listener::close_door() {
    if (standby_) standby_->leaving();
    if (!handed_over_) {
        if (!owner_.users || stop_.load()) unlink(files_.socket.c_str());
        close(listen_);
        listen_ = -1;
    }
    log_line("leaving");
    if (owner_.server && owner_.server->fatal() == CUDA_SUCCESS)
        owner_.server->journal().end(journal::Ending::kLeft);
}

bool Listener::wind_up() {
    if (owner_.server) owner_.server->stop_sessions("the server was stopped");
    if (owner_.server && owner_.server->context_lives()) return false;
    for (const auto& connection : connections_) connection->hang_up();
    uint64_t started = journal::now_ns();
    while (true) {
        reap();
        bool lost = owner_.server && owner_.server->fatal() != CUDA_SUCCESS;
        if (connections_.empty()) return !lost && !(owner_.server && owner_.server->keeps());
        uint64_t stuck = owner_.server ? owner_.server->stuck() : 0;
        if (connections_.size() <= stuck || journal::now_ns() - started > kWindUp) return false;
        wait(20);
    }
}

}  // namespace smt::runtime::server
