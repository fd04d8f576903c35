#include "runtime/device/cuda/context_wide.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/device/cuda/launches_ahead.h"
#include "runtime/device/device.h"
#include "runtime/device/held_up.h"

namespace smt::runtime::device {

namespace {

using Clock = std::chrono::steady_clock;
using Word = StreamWaits::Word;
using Words = StreamWaits::Words;

constexpr auto kPoll = std::chrono::milliseconds(1);
// A new wait stands back so many polls for a call that finds no moment, and longer for one that has not found
// one for kLong. No longer: the client that is held back may be the one that ends the waits there are.
constexpr int kPolite = 10, kVeryPolite = 100;
constexpr auto kLong = std::chrono::seconds(1);
constexpr auto kForgotten = std::chrono::milliseconds(10);  // callers that ask once ask again before
// A call waits so many times the patience with a single wait, where it is another wait each time.
constexpr int kTimeoutWithAll = 3;

struct State {
    DriverApi real;              // written before any other thread is there
    Clock::duration patience{};  // likewise
    StreamWaits waits{real};
    LaunchesAhead launches{real};
    std::atomic<bool> launches_watched{false};  // watch_launches()
    // Shared: a wait or a watched launch is enqueued; exclusive: a context-wide call.
    std::shared_timed_mutex gate;
    std::mutex deferred_mutex;
    std::vector<std::function<void()>> deferred;
    LaunchesAhead::Call once;                 // calls that ask once, the latest of them at `asked`;
    Clock::time_point asked{};                // both with the gate held exclusively
    std::atomic<bool> held{false};            // hold_context_wide_calls()
    std::atomic<int> knocks{0};               // calls that launches let by (QuietGate::take())
    std::atomic<int> wanted{0};               // calls that look for their moment,
    std::atomic<Clock::rep> wanted_since{0};  // the first of them
    std::atomic<bool> graphs_wait{false};     // some graph holds a host function or waits for a value
};

// Never destroyed: sessions' threads may outlive main().
State& state = *new State;
DriverApi& real = state.real;

bool captures(CUstream stream) {
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    return real.cuStreamIsCapturing(stream, &capture) == CUDA_SUCCESS &&
           capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

uint32_t session_of_thread() {
    const Guest* const guest = guest_of_thread();
    return guest ? guest->id() : 0;
}

// With the gate held exclusively and no stream waiting.
void make_deferred() {
    std::vector<std::function<void()>> calls;
    {
        std::lock_guard lock(state.deferred_mutex);
        calls.swap(state.deferred);
    }
    for (const auto& call : calls) call();
}

void defer(std::function<void()> call) {
    std::lock_guard lock(state.deferred_mutex);
    state.deferred.push_back(std::move(call));
}

// How a call asks for its moment, again and again.
struct Asking {
    LaunchesAhead::Call call;
    bool behind_kernels = false;  // out: there was none for a kernel that may not end
    int found_taken = 0;          // so many times in a row launches had the gate
};

// For a call that waits for later launches alone. What a stream waits for may come behind a launch.
void has_launches_stand_back() {
    if (!state.held.load() && !state.waits.any()) state.launches.keep_back();
}

// With the gate held exclusively. `call`: null: one that asks once.
bool kernels_ahead(LaunchesAhead::Call* call) {
    if (state.held.load()) return true;
    if (!state.launches_watched.load()) return false;
    if (!call) {
        const Clock::time_point now = Clock::now();
        if (now - std::exchange(state.asked, now) > kForgotten) state.once = {};
        call = &state.once;
    }
    const LaunchesAhead::Front front = state.launches.front(call, state.patience);
    if (front == LaunchesAhead::Front::kLater) has_launches_stand_back();
    return front != LaunchesAhead::Front::kNone;
}

thread_local bool quiet_here = false;  // the thread is between begin_quiet() and end_quiet()

// The gate, held exclusively while no stream waits.
class QuietGate {
public:
    explicit QuietGate(Asking* asking = nullptr) : lock_(state.gate, std::defer_lock) {
        if (quiet_here) return;
        // A launch that is watched may wait in the driver, where its queue is full.
        quiet_ = state.launches_watched.load() ? take(asking) : (lock_.lock(), true);
        if (!quiet_) return;
        const bool behind_kernels = kernels_ahead(asking ? &asking->call : nullptr);
        if (asking) asking->behind_kernels = behind_kernels;
        quiet_ = !behind_kernels && !state.waits.any();
        if (quiet_) make_deferred();
    }
    explicit operator bool() const { return quiet_; }
    void keep() { lock_.release(); }  // held until the thread unlocks it itself

private:
    // The lock prefers launches that come. A call that does not get it for them has them wait for a moment.
    bool take(Asking* asking) {
        const bool knocks = asking && asking->found_taken >= kPolite;
        if (knocks) state.knocks.fetch_add(1);
        const bool taken = lock_.try_lock_for(kPoll);
        if (knocks) state.knocks.fetch_sub(1);
        if (asking) asking->found_taken = taken ? 0 : asking->found_taken + 1;
        if (!taken && asking && asking->call.behind) has_launches_stand_back();  // it still waits for those
        return taken;
    }

    std::unique_lock<std::shared_timed_mutex> lock_;
    bool quiet_ = true;
};

// A call that waits until no stream does.
class Patience {
public:
    Patience()
        : guest_(guest_of_thread()),
          session_(session_of_thread()),
          held_up_(session_, "a stream of its own"),
          began_(Clock::now()) {
        if (state.wanted.fetch_add(1) == 0) state.wanted_since.store(began_.time_since_epoch().count());
    }
    ~Patience() { state.wanted.fetch_sub(1); }
    Patience(const Patience&) = delete;
    Patience& operator=(const Patience&) = delete;

    // False: its own session ends, or stands still. A session that holds it up for too long is ended.
    bool goes_on(const Asking& asking) {
        if (guest_ && guest_->leaves()) return false;
        if (const std::optional<StreamWaits::Waiter> waiter = state.waits.eldest(session_)) {
            held_up_.change(waiter->what);
            const Clock::time_point now = Clock::now();
            const bool overdue = now - std::max(waiter->since, began_) > state.patience ||
                                 now - began_ > kTimeoutWithAll * state.patience;
            if (overdue && waiter->session != ended_) {
                ended_ = waiter->session;
                state.waits.end_session(
                    ended_, "a stream of it waits (" + waiter->what +
                                ") and held up other programs' calls for longer than wait in SMT_LIMITS");
            }
        } else {
            held_up_.change(asking.behind_kernels ? "a kernel that may not end" : "a stream of its own");
        }
        std::this_thread::sleep_for(kPoll);
        return true;
    }

private:
    Guest* const guest_;
    const uint32_t session_;
    HeldUp held_up_;
    const Clock::time_point began_;
    uint32_t ended_ = 0;
};

template <auto member>
struct Guarded;

template <typename... Arguments, CUresult (*DriverApi::*member)(Arguments...)>
struct Guarded<member> {
    static inline const char* name = "";

    // NOT_READY when the context is not quiet: for callers that can try again.
    static CUresult if_quiet(Arguments... arguments) { return attempt(nullptr, arguments...); }
    static CUresult attempt(Asking* asking, Arguments... arguments) {
        const QuietGate gate(asking);
        if (!gate) return CUDA_ERROR_NOT_READY;
        const HeldUp held_up(session_of_thread(),
                             std::string("the driver: ") + name + " waits for all work on the GPU");
        return (real.*member)(arguments...);
    }
    // At once, or with the next call of this kind: no caller depends on the moment.
    static CUresult soon(Arguments... arguments) {
        const QuietGate gate;
        if (gate) return (real.*member)(arguments...);
        defer([arguments...] { (real.*member)(arguments...); });
        return CUDA_SUCCESS;
    }
    static CUresult in_time(Arguments... arguments) {
        Asking asking;
        CUresult status = attempt(&asking, arguments...);
        if (status != CUDA_ERROR_NOT_READY) return status;
        Patience patience;
        while (patience.goes_on(asking)) {
            status = attempt(&asking, arguments...);
            if (status != CUDA_ERROR_NOT_READY) return status;
        }
        return CUDA_ERROR_DEINITIALIZED;  // to a program that is gone, or for a record that is executed again
    }
};

void stand_back() {
    for (int i = 0; i < kVeryPolite && state.wanted.load() != 0; ++i) {
        const Clock::time_point since{Clock::duration(state.wanted_since.load())};
        if (i >= kPolite && Clock::now() - since < kLong) return;
        std::this_thread::sleep_for(kPoll);
    }
}

template <typename Enqueue>
CUresult enqueue_wait(CUstream stream, const char* call, Words words, const Enqueue& enqueue) {
    if (!std::all_of(words->begin(), words->end(), StreamWaits::can_end)) return CUDA_ERROR_INVALID_VALUE;
    if (captures(stream)) {
        state.graphs_wait.store(true);
        state.waits.captured(*words);
        return enqueue();
    }
    stand_back();
    std::shared_lock lock(state.gate);
    const uint64_t number = state.waits.begin(stream, call, std::move(words));
    const CUresult status = enqueue();
    state.waits.enqueued(stream, number, status);
    return status;
}

Words words_of(std::vector<Word> words) { return std::make_shared<std::vector<Word>>(std::move(words)); }

CUresult wait_value_32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
    return enqueue_wait(stream, "cuStreamWaitValue32", words_of({{address, value, flags, false}}),
                        [&] { return real.cuStreamWaitValue32_v2(stream, address, value, flags); });
}

CUresult wait_value_64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
    return enqueue_wait(stream, "cuStreamWaitValue64", words_of({{address, value, flags, true}}),
                        [&] { return real.cuStreamWaitValue64_v2(stream, address, value, flags); });
}

CUresult batch(CUstream stream, unsigned count, CUstreamBatchMemOpParams* list, unsigned flags) {
    std::vector<Word> words;
    for (unsigned i = 0; list && i < count; ++i) {
        const auto& wait = list[i].waitValue;
        if (list[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32)
            words.push_back({wait.address, wait.value, wait.flags, false});
        if (list[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
            words.push_back({wait.address, wait.value64, wait.flags, true});
    }
    const auto enqueue = [&] { return real.cuStreamBatchMemOp_v2(stream, count, list, flags); };
    return words.empty() ? enqueue()
                         : enqueue_wait(stream, "cuStreamBatchMemOp", words_of(std::move(words)), enqueue);
}

// On a stream it returns at once; in a graph it waits for the client.
CUresult host_function(CUstream stream, CUhostFn function, void* data) {
    if (captures(stream)) state.graphs_wait.store(true);
    return real.cuLaunchHostFunc(stream, function, data);
}

CUresult host_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                   const CUDA_HOST_NODE_PARAMS* parameters) {
    state.graphs_wait.store(true);
    return real.cuGraphAddHostNode(node, graph, dependencies, count, parameters);
}

template <typename Enqueue>
CUresult launch(CUstream stream, const Enqueue& enqueue) {
    if (!state.launches_watched.load(std::memory_order_relaxed) || captures(stream)) return enqueue();
    for (const Clock::time_point until = Clock::now() + kPoll; state.knocks.load() && Clock::now() < until;)
        std::this_thread::yield();
    std::shared_lock lock(state.gate);
    const CUresult status = enqueue();
    if (status == CUDA_SUCCESS) state.launches.note(stream, launch_of_thread());
    if (!state.launches_watched.load()) state.launches.forget();  // no more since it was looked at
    return status;
}

CUresult launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       CUstream stream, void** parameters, void** extra) {
    return launch(stream, [&] {
        return real.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                                   stream, parameters, extra);
    });
}

CUresult launch_kernel_ex(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
    return launch(config->hStream,
                  [&] { return real.cuLaunchKernelEx(config, function, parameters, extra); });
}

CUresult launch_cooperative(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                            CUstream stream, void** parameters) {
    return launch(stream, [&] {
        return real.cuLaunchCooperativeKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                              shared_bytes, stream, parameters);
    });
}

CUresult graph_launch(CUgraphExec graph, CUstream stream) {
    const auto enqueue = [&] { return real.cuGraphLaunch(graph, stream); };
    if (!state.graphs_wait.load(std::memory_order_relaxed)) return launch(stream, enqueue);
    return enqueue_wait(stream, "a graph", state.waits.captured(), enqueue);
}

}  // namespace

void guard_context_wide_calls(DriverApi& driver, std::chrono::steady_clock::duration patience) {
    real = driver;
    state.patience = patience;
#define GUARD(name, guarded) \
    if (driver.name) driver.name = guarded
#define CONTEXT_WIDE(call, how)              \
    Guarded<&DriverApi::call>::name = #call; \
    GUARD(call, Guarded<&DriverApi::call>::how)
    CONTEXT_WIDE(cuMemHostUnregister, if_quiet);
    CONTEXT_WIDE(cuMemFree_v2, soon);
    CONTEXT_WIDE(cuArrayDestroy, soon);
    CONTEXT_WIDE(cuMipmappedArrayDestroy, soon);
    CONTEXT_WIDE(cuModuleUnload, soon);
    CONTEXT_WIDE(cuLibraryUnload, soon);
    CONTEXT_WIDE(cuModuleLoadDataEx, in_time);
    CONTEXT_WIDE(cuLibraryGetModule, in_time);
    CONTEXT_WIDE(cuModuleGetFunction, in_time);
    CONTEXT_WIDE(cuKernelGetFunction, in_time);
    CONTEXT_WIDE(cuCtxSetLimit, in_time);
    CONTEXT_WIDE(cuGreenCtxCreate, in_time);
    GUARD(cuStreamWaitValue32_v2, wait_value_32);
    GUARD(cuStreamWaitValue64_v2, wait_value_64);
    GUARD(cuStreamBatchMemOp_v2, batch);
    GUARD(cuLaunchHostFunc, host_function);
    GUARD(cuGraphAddHostNode, host_node);
    GUARD(cuGraphLaunch, graph_launch);
    GUARD(cuLaunchKernel, launch_kernel);
    GUARD(cuLaunchKernelEx, launch_kernel_ex);
    GUARD(cuLaunchCooperativeKernel, launch_cooperative);
#undef CONTEXT_WIDE
#undef GUARD
}

void hold_context_wide_calls(bool hold) { state.held.store(hold); }

void watch_launches(bool watch) {
    if (state.launches_watched.exchange(watch) && !watch) state.launches.forget();
}

std::vector<WatchedLaunch> watched_launches() { return state.launches.under_way(); }

bool stand_back_for_calls(Clock::duration longest) {
    return !state.launches_watched.load(std::memory_order_relaxed) || state.launches.stand_back(longest);
}

void make_deferred_calls() {
    if (state.launches_watched.load()) state.launches.look();
    {
        std::lock_guard lock(state.deferred_mutex);
        if (state.deferred.empty()) return;
    }
    const QuietGate gate;
}

bool begin_quiet() {
    QuietGate gate;
    if (!gate) return false;
    gate.keep();
    return quiet_here = true;
}

void end_quiet() {
    quiet_here = false;
    state.gate.unlock();
}

StreamWaits& stream_waits() { return state.waits; }

}  // namespace smt::runtime::device
