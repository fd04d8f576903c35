#include "runtime/server/takeover/successor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/journal/printable.h"
#include "runtime/keeper/channel.h"
#include "runtime/keeper/client.h"
#include "runtime/protocol/state.h"
#include "runtime/server/listener.h"
#include "runtime/server/log.h"
#include "runtime/server/process.h"
#include "runtime/server/server.h"
#include "runtime/server/takeover/packet.h"
#include "runtime/server/takeover/process_end.h"
#include "runtime/server/takeover/taken_hello.h"

namespace smt::runtime::server {

// What the keeper held at the takeover, until a session claims it. What no session claims is released: its
// session has stayed behind, or the call that made it was half done. Any thread.
class Successor::Chunks {
public:
    explicit Chunks(device::Device& device) : device_(device) {}
    ~Chunks() {
        for (const auto& [id, chunk] : found_) {
            device_.driver().cuMemRelease(chunk.made.handle);
            device_.physical_memory().forget(id);
        }
    }
    Chunks(const Chunks&) = delete;
    Chunks& operator=(const Chunks&) = delete;

    CUresult find() {
        std::vector<device::PhysicalMemory::Found> all;
        const CUresult status = device_.physical_memory().find_all(&all);
        for (const auto& each : all) found_[each.made.id] = each;
        return status;
    }
    CUresult claim(uint64_t id, uint64_t bytes, CUmemGenericAllocationHandle* handle) {
        std::lock_guard lock(mutex_);
        const auto chunk = found_.find(id);
        if (chunk == found_.end() || chunk->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
        *handle = chunk->second.made.handle;
        found_.erase(chunk);
        return CUDA_SUCCESS;
    }

private:
    device::Device& device_;
    std::mutex mutex_;
    std::map<uint64_t, device::PhysicalMemory::Found> found_;
};

namespace {

// Of a process whose socket is closed: it gives its memory back.
constexpr auto kEnds = std::chrono::seconds(30);
constexpr size_t kFilesOfSession = 4;

// The one that made the socket.
int process_behind(int socket) {
    ucred made{};
    socklen_t bytes = sizeof made;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &made, &bytes) == 0 ? made.pid : -1;
}

bool is_closed(int socket) {
    pollfd other{socket, 0, 0};
    return poll(&other, 1, 0) > 0;  // POLLHUP
}

// As sessions are called in the log.
std::string name_of_kept(const Packet& said, int state) {
    std::string all = read_file(fcntl(state, F_DUPFD_CLOEXEC, 0), said.value);
    if (said.changes == Session::kNotDescribed) return all;
    protocol::Reader in(all.data(), all.size());
    const protocol::Hello hello = take_hello(in).value_or(protocol::Hello{});
    return fmt::format("{}, pid {}", journal::printable(protocol::text_in(hello.tenant)), hello.pid);
}

// What the program prints. Its calls return the error from then on.
void tell_lost(int control, const std::string& how_it_ended, const std::string& why) {
    protocol::Farewell farewell;
    const std::string text =
        "it " + how_it_ended + ", and this program cannot go on in another process: " + why;
    std::strncpy(farewell.message, text.c_str(), sizeof farewell.message - 1);
    send(control, &farewell, sizeof farewell, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(control, SHUT_RDWR);
}

}  // namespace

// Programs that come new are not served before the sessions that come have their addresses: they might get
// them.
class Successor::Places {
public:
    void expect() {
        std::lock_guard lock(mutex_);
        ++left_;
    }
    void found() {
        std::lock_guard lock(mutex_);
        --left_;
        changed_.notify_all();
    }
    void await() {  // not for ever: a session may fail before it has come so far
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::seconds(2), [this] { return left_ == 0; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int left_ = 0;
};

Successor::~Successor() {
    close(socket_);
    if (server_ >= 0) close(server_);
    for (const auto& [session, kept] : kept_) keeper::close_all(kept.files);
}

bool Successor::begin(device::Device& device) {
    Packet said;
    std::vector<int> files;
    server_pid_ = process_behind(socket_);
    server_ = open_process(server_pid_);
    if (!take_packet(socket_, PacketKind::kBegin, 1, &said, &files)) return false;
    device.physical_memory().keep_with(std::make_unique<keeper::Client>(files[0]),
                                       static_cast<int>(said.value));
    device.errands();  // what its first use loads is not to be loaded after the fault
    return put_packet(socket_, make_packet(PacketKind::kReady));
}

bool Successor::await() {
    Packet said;
    std::vector<int> files;
    while (take_any_packet(socket_, &said, &files, -1)) {
        const bool serves = said.kind == PacketKind::kServe || said.kind == PacketKind::kTakeOver;
        if (serves && files.size() == 3) {
            if (listening_ >= 0) close(listening_), close(lock_);
            listening_ = files[0];
            lock_ = files[1];
            state_ = read_file(files[2], said.value);
        } else if (said.kind == PacketKind::kKept && files.size() == kFilesOfSession) {
            keep(said, std::move(files));
        } else if (said.kind == PacketKind::kEnds && files.size() == 1) {
            const std::string all = read_file(files[0], said.value);
            protocol::Reader in(all.data(), all.size());
            why_it_ended_ = protocol::take_text(in);
            culprit_ = protocol::take_text(in);
        } else if (said.kind == PacketKind::kForget) {
            forget(said.number);
        } else {
            keeper::close_all(files);
            return false;
        }
        files.clear();
        if (said.kind != PacketKind::kTakeOver) continue;
        while (!kept_.empty()) forget(kept_.begin()->first);  // they come by themselves
        laps_.emplace();
        return true;
    }
    return await_end();
}

void Successor::keep(const Packet& said, std::vector<int> files) {
    forget(said.number);
    kept_[said.number] = {said, std::move(files)};
}

void Successor::forget(uint64_t session) {
    const auto found = kept_.find(session);
    if (found == kept_.end()) return;
    keeper::close_all(found->second.files);
    kept_.erase(found);
}

// Nothing more can be read. If the socket is closed, and nothing was said before, the process has crashed:
// what it had of the GPU is gone when it has ended.
bool Successor::await_end() {
    if (!is_closed(socket_)) {
        log_line(
            fmt::format("the standby ends: it cannot take what the server sends. It has {} sessions, of "
                        "which each needs {} files, and may open {} (RLIMIT_NOFILE)",
                        kept_.size(), kFilesOfSession, file_limit()));
        return false;
    }
    if (listening_ < 0 || kept_.empty()) return false;
    // If it lives it has closed the socket only.
    crashed_ = await_end_of(server_pid_, server_, kEnds);
    return crashed_;
}

void Successor::apply(Server& server) {
    protocol::Reader in(state_.data(), state_.size());
    server.set_policy(protocol::take_text(in));
    server.restore_record(in);
    server.offences().add(culprit_, journal::now_ns());
}

std::string Successor::how_it_ended() const {
    return why_it_ended_.empty() ? "crashed or was killed" : "ended itself: " + why_it_ended_;
}

void Successor::take_sessions(Server& server, Listener& listener) {
    const auto chunks = std::make_shared<Chunks>(server.device());
    if (laps_) laps_->end("the server is made");
    const CUresult found = chunks->find();
    if (laps_) {
        laps_->end("the keeper's memory is here");
        server.note("it takes sessions after " + laps_->text());
    }
    if (found != CUDA_SUCCESS)
        server.note(
            fmt::format("the keeper's memory cannot be taken over: error {}", static_cast<int>(found)));
    if (crashed_)
        take_kept(listener, chunks);
    else
        take_sent(server, listener, chunks);
}

void Successor::take_kept(Listener& listener, const std::shared_ptr<Chunks>& chunks) {
    const auto places = std::make_shared<Places>();
    for (auto& [number, kept] : kept_) {
        const int control = kept.files[0];
        const std::string why = take_kept(listener, kept, chunks, places);
        if (why.empty()) continue;
        tell_lost(control, how_it_ended(), why);
        log_line(fmt::format("session {} ({}): it ends, as it cannot go on in another process: {}", number,
                             name_of_kept(kept.said, kept.files[2]), why));
        keeper::close_all(kept.files);
    }
    kept_.clear();
    places->await();
}

// Empty: it has the descriptors; else why the session ends.
std::string Successor::take_kept(Listener& listener, Kept& kept, const std::shared_ptr<Chunks>& chunks,
                                 const std::shared_ptr<Places>& places) {
    const int control = kept.files[0];
    const std::shared_ptr<const Marks> marks = Marks::open(fcntl(kept.files[3], F_DUPFD_CLOEXEC, 0));
    if (kept.said.changes == Session::kNotDescribed) return kept.said.text;
    if (!marks) return "its marks cannot be read";
    if (std::string why = marks->why_not(kept.said.changes); !why.empty()) return why;
    Session::Taken taken{{std::exchange(kept.files[2], -1), kept.said.value}, kept.files[1], {}, {}};
    protocol::Reader in(taken.state.data(), taken.state.size());
    const std::optional<protocol::Hello> hello = take_hello(in);
    taken.claim = [chunks](uint64_t id, uint64_t bytes, CUmemGenericAllocationHandle* handle) {
        return chunks->claim(id, bytes, handle);
    };
    taken.commit = [control, how = how_it_ended()](const std::string& problem) {
        if (!problem.empty()) tell_lost(control, how, problem);
        return true;
    };
    taken.marks = marks;
    places->expect();
    taken.placed = [places] { places->found(); };
    close(kept.files[3]);
    listener.take(hello.value_or(protocol::Hello{}), control, std::move(taken));
    return {};
}

void Successor::take_sent(Server& server, Listener& listener, const std::shared_ptr<Chunks>& chunks) {
    const auto places = std::make_shared<Places>();
    Packet said;
    std::vector<int> files;
    while (take_any_packet(socket_, &said, &files, -1) && said.kind == PacketKind::kSession &&
           files.size() == 4) {
        const int control = files[0], arena = files[1], line = files[3];
        Session::Taken taken{{files[2], said.value}, arena, {}, {}};
        protocol::Reader in(taken.state.data(), taken.state.size());
        const std::optional<protocol::Hello> hello = take_hello(in);
        taken.claim = [chunks](uint64_t id, uint64_t bytes, CUmemGenericAllocationHandle* handle) {
            return chunks->claim(id, bytes, handle);
        };
        server.sessions_come(1);
        taken.commit = [line, &server](const std::string& problem) {
            Packet answer;
            std::vector<int> none;
            const bool go = put_packet(line, make_packet(PacketKind::kMade, 0, problem)) &&
                            take_packet(line, PacketKind::kGo, 0, &answer, &none);
            close(line);
            server.sessions_come(-1);
            return go;
        };
        places->expect();
        taken.placed = [places] { places->found(); };
        listener.take(hello.value_or(protocol::Hello{}), control, std::move(taken));
        files.clear();
    }
    keeper::close_all(files);
    if (said.kind == PacketKind::kDone && said.text[0] != 0) server.blame(said.text, said.value);
    places->await();
}

}  // namespace smt::runtime::server
