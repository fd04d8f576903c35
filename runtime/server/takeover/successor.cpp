#include "runtime/server/takeover/successor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/keeper/channel.h"
#include "runtime/keeper/client.h"
#include "runtime/protocol/state.h"
#include "runtime/server/listener.h"
#include "runtime/server/server.h"
#include "runtime/server/takeover/packet.h"
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

// Programs that come new are not served before the sessions that come have their addresses: they might get
// them.
class Places {
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

}  // namespace

Successor::~Successor() { close(socket_); }

bool Successor::begin(device::Device& device) {
    Packet said;
    std::vector<int> files;
    if (!take_packet(socket_, PacketKind::kBegin, 1, &said, &files)) return false;
    device.physical_memory().keep_with(std::make_unique<keeper::Client>(files[0]),
                                       static_cast<int>(said.value));
    device.errands();  // what its first use loads is not to be loaded after the fault
    return put_packet(socket_, make_packet(PacketKind::kReady));
}

bool Successor::await() {
    Packet said;
    std::vector<int> files;
    if (!take_packet(socket_, PacketKind::kTakeOver, 3, &said, &files)) return false;
    listening_ = files[0];
    lock_ = files[1];
    state_ = read_file(files[2], said.value);
    return true;
}

void Successor::apply(Server& server) {
    protocol::Reader in(state_.data(), state_.size());
    server.set_policy(protocol::take_text(in));
    server.offences().restore(in);
}

void Successor::take_sessions(Server& server, Listener& listener) {
    const auto chunks = std::make_shared<Chunks>(server.device());
    const CUresult found = chunks->find();
    if (found != CUDA_SUCCESS)
        server.note(
            fmt::format("the keeper's memory cannot be taken over: error {}", static_cast<int>(found)));
    const auto places = std::make_shared<Places>();
    Packet said;
    std::vector<int> files;
    while (take_any_packet(socket_, &said, &files, -1) && said.kind == PacketKind::kSession &&
           files.size() == 4) {
        const int control = files[0], arena = files[1], line = files[3];
        Session::Taken taken{read_file(files[2], said.value), arena, {}, {}};
        protocol::Reader in(taken.state.data(), taken.state.size());
        const std::optional<protocol::Hello> hello = take_hello(in);
        taken.claim = [chunks](uint64_t id, uint64_t bytes, CUmemGenericAllocationHandle* handle) {
            return chunks->claim(id, bytes, handle);
        };
        taken.commit = [line](const std::string& problem) {
            Packet answer;
            std::vector<int> none;
            const bool go = put_packet(line, make_packet(PacketKind::kMade, 0, problem)) &&
                            take_packet(line, PacketKind::kGo, 0, &answer, &none);
            close(line);
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
