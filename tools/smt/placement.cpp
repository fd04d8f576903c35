// See placement.h.
#include "tools/smt/placement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "runtime/protocol/server_key.h"
#include "tools/smt/command.h"
#include "tools/smt/control.h"
#include "tools/smt/gpu_choice.h"
#include "tools/smt/places.h"
#include "tools/smt/status_view.h"

namespace smt::tools {
namespace {

constexpr const char* kPlacedFile = "placed";

// How long a program that is yet to begin counts without a process, in seconds.
constexpr uint64_t kBegins = 60;

struct Placed {
    std::string key;  // of the GPU
    pid_t pid = 0;    // 0: it is yet to begin
    uint64_t started =
        0;  // what tells the process from a later one of its number; without, when it was placed
    uint64_t needed = 0;  // bytes
};

uint64_t seconds_since_boot() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<uint64_t>(now.tv_sec);
}

struct Process {
    pid_t parent = 0;
    uint64_t started = 0;  // in ticks since the machine began
};

// Nothing: there is no such process.
std::optional<Process> process_of(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    if (!std::getline(file, line) || line.rfind(')') == std::string::npos) return std::nullopt;
    std::istringstream fields(line.substr(line.rfind(')') + 1));  // from the third on
    std::string skipped, state;
    Process process;
    fields >> state >> process.parent;
    for (int i = 5; i < 22; ++i) fields >> skipped;
    fields >> process.started;
    if (!fields || state == "Z" || state == "X") return std::nullopt;
    return process;
}

bool descends_from(pid_t pid, pid_t ancestor) {
    while (pid != ancestor) {
        const std::optional<Process> process = pid > 0 ? process_of(pid) : std::nullopt;
        if (!process) return false;
        pid = process->parent;
    }
    return true;
}

// The file `placed`, which no other process reads or changes while the object exists.
class PlacedFile {
public:
    PlacedFile() : path_(runtime_directory() + "/" + kPlacedFile) {
        const std::string directory = runtime_directory();
        if (const std::string problem = runtime_directory_problem(directory); !problem.empty())
            throw Failure("cannot use " + directory + ": " + problem);
        if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) fail("make " + directory);
        file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file_ < 0) fail("open " + path_);
        while (::flock(file_, LOCK_EX) != 0)
            if (errno != EINTR) fail("lock " + path_);
    }
    ~PlacedFile() {
        if (file_ >= 0) ::close(file_);
    }
    PlacedFile(const PlacedFile&) = delete;
    PlacedFile& operator=(const PlacedFile&) = delete;

    // Those that still run or are yet to begin, without this process. What is no line of this smt's is left
    // out.
    std::vector<Placed> read() const {
        std::ifstream file(path_);
        std::vector<Placed> all;
        for (std::string line; std::getline(file, line);) {
            std::istringstream fields(line);
            Placed each;
            if (!(fields >> each.key >> each.pid >> each.started >> each.needed)) continue;
            const std::optional<Process> process = each.pid ? process_of(each.pid) : std::nullopt;
            const bool counts = each.pid == 0 ? seconds_since_boot() - each.started < kBegins
                                              : process && process->started == each.started;
            if (counts && each.pid != ::getpid()) all.push_back(each);
        }
        return all;
    }
    // With a program on that GPU.
    void write(std::vector<Placed> all, const Gpu& gpu, uint64_t needed, Begins where) {
        const std::optional<Process> self = process_of(::getpid());
        if (!self) throw Failure("cannot read /proc/self/stat: is /proc mounted?");
        if (where == Begins::kHere)
            all.push_back({gpu.key, ::getpid(), self->started, needed});
        else
            all.push_back({gpu.key, 0, seconds_since_boot(), needed});
        std::string text;
        for (const Placed& each : all)
            text += fmt::format("{} {} {} {}\n", each.key, each.pid, each.started, each.needed);
        if (::ftruncate(file_, 0) != 0 ||
            ::pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
            fail("write " + path_);
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw Failure("cannot " + what + ": " + std::strerror(errno));
    }

    const std::string path_;
    int file_ = -1;
};

// What the servers of one GPU have: the shared one, and those of strict tenants.
struct Sessions {
    std::vector<protocol::TenantStatus> tenants;
    unsigned others = 0;                       // of users whom this one may not see
    uint64_t total_bytes = 0, free_bytes = 0;  // 0: no server runs
    double busy = 0;
};

Sessions sessions_on(const std::string& gpu) {
    Sessions sessions;
    StatusView view;
    for (const std::string& key : keys_with(".sock")) {
        if (protocol::gpu_of_key(bare_key(key)) != gpu) continue;
        const std::optional<ServerStatus> status = ask_tenants(key);
        const auto device = status ? ask_device(key) : std::nullopt;
        if (!device) continue;  // it has left, or has no device
        sessions.total_bytes = device->total_bytes;
        sessions.free_bytes = std::max(sessions.free_bytes, device->free_bytes);
        for (const auto& [session, use] : view.use_of(*status).by_session)
            sessions.busy += use.multiprocessors.value_or(0);
        sessions.others += status->server.others;
        sessions.tenants.insert(sessions.tenants.end(), status->tenants.begin(), status->tenants.end());
    }
    return sessions;
}

bool has_session(const Sessions& sessions, pid_t pid) {
    return std::any_of(sessions.tenants.begin(), sessions.tenants.end(),
                       [&](const protocol::TenantStatus& each) { return descends_from(each.pid, pid); });
}

// A tenant counts with its limit, if it has one, since it may come to hold that.
uint64_t claimed_bytes(const Sessions& sessions) {
    std::map<std::string, std::pair<uint64_t, uint64_t>> by_tenant;  // what it holds, and its limit
    for (const protocol::TenantStatus& each : sessions.tenants) {
        auto& [held, limit] = by_tenant[each.tenant];
        held += each.device_bytes - std::min(each.device_bytes, each.memory.idle);
        limit = std::max(limit, each.memory_limit);
    }
    uint64_t all = 0;
    for (const auto& [tenant, bytes] : by_tenant) all += std::max(bytes.first, bytes.second);
    return all;
}

// One whose server does not answer comes last.
GpuLoad load_of(const Gpu& gpu, const std::vector<Placed>& placed) {
    GpuLoad load;
    Sessions sessions;
    try {
        sessions = sessions_on(gpu.key);
    } catch (const Failure& failure) {
        fmt::print(stderr, "smt run: {}: {}\n", gpu.name, failure.what());
        load.programs = std::numeric_limits<unsigned>::max();
        return load;
    }
    load.total_bytes = sessions.total_bytes ? sessions.total_bytes : gpu.memory;
    load.programs = static_cast<unsigned>(sessions.tenants.size()) + sessions.others;
    load.busy = std::min(sessions.busy, 1.0);
    uint64_t claimed = claimed_bytes(sessions), idle = 0;
    for (const protocol::TenantStatus& each : sessions.tenants) idle += each.memory.idle;
    for (const Placed& each : placed) {
        if (each.key != gpu.key || (each.pid != 0 && has_session(sessions, each.pid))) continue;
        ++load.programs;
        claimed += each.needed;
    }
    load.free_bytes = load.total_bytes - std::min(load.total_bytes, claimed);
    // Programs that are not smt's hold memory, too.
    if (sessions.total_bytes) load.free_bytes = std::min(load.free_bytes, sessions.free_bytes + idle);
    return load;
}

}  // namespace

Gpu place_program(const std::vector<Gpu>& gpus, uint64_t needed, Begins where) {
    PlacedFile file;
    const std::vector<Placed> placed = file.read();
    std::vector<GpuLoad> loads;
    for (const Gpu& gpu : gpus) loads.push_back(load_of(gpu, placed));
    const std::optional<size_t> chosen = choose_gpu(loads, needed);
    if (!chosen) {
        uint64_t most = 0;
        for (const GpuLoad& load : loads) most = std::max(most, load.total_bytes);
        throw Failure(fmt::format("no GPU has {} MiB of memory, which --memory names: the largest has {} MiB",
                                  needed >> 20, most >> 20));
    }
    file.write(placed, gpus[*chosen], needed, where);
    return gpus[*chosen];
}

void note_program(const Gpu& gpu, uint64_t needed, Begins where) {
    PlacedFile file;
    file.write(file.read(), gpu, needed, where);
}

}  // namespace smt::tools
