// How long does a request take that one thread makes and another one answers, while others compute on all
// cores?
//
// The client makes a request every 3 ms, and looks for the answer: 40 us at a time, then 2 ms with a yield, a
// pause or a nap between two looks. The server looks for requests likewise, for 10 ms, or sleeps on a futex
// once it has looked for 50 us. The answer comes 0.12 ms after the server saw the request, as a small
// kernel's would. No GPU: what happens on the cores of a machine that has one.
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kClientSpin = 40'000, kClientLooks = 2'000'000, kServerSpin = 50'000,
                   kServerLooks = 10'000'000, kTakes = 120'000;  // ns
constexpr int kRequests = 120;

std::atomic<uint64_t> requests{0}, answered{0};  // answered: when the last one was seen
std::atomic<uint32_t> asleep{0};
std::atomic<bool> over{false};

uint64_t now() {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                 std::chrono::nanoseconds(1));
}
void pause() { __builtin_ia32_pause(); }
void yield() { sched_yield(); }
void nap() {
    const timespec moment{0, 1000};
    nanosleep(&moment, nullptr);
}

template <class Done>
bool look(Done done, void (*between)(), uint64_t ns) {
    const uint64_t end = now() + ns;
    do {
        if (done()) return true;
        between();
    } while (now() < end);
    return done();
}

struct Way {
    const char* name;
    void (*between)();  // null: it sleeps
};

void serve(const Way& way) {
    prctl(PR_SET_TIMERSLACK, 1ul);
    for (uint64_t seen = 0;; seen = requests.load()) {
        const auto more = [&] { return requests.load() != seen || over.load(); };
        if (!look(more, pause, kServerSpin) && !(way.between && look(more, way.between, kServerLooks))) {
            while (!more()) {
                asleep.store(1);
                const timespec limit{0, 20'000'000};
                if (!more()) syscall(SYS_futex, &asleep, FUTEX_WAIT, 1, &limit, nullptr, 0);
            }
            asleep.store(0);
        }
        if (over.load()) return;
        answered.store(now());
    }
}

void ask(const Way& way, std::vector<double>& took_us) {
    prctl(PR_SET_TIMERSLACK, 1ul);
    for (int i = 0; i < kRequests; ++i) {
        const uint64_t begin = now(), before = answered.load();
        requests.fetch_add(1);
        if (asleep.exchange(0)) syscall(SYS_futex, &asleep, FUTEX_WAKE, 1, nullptr, nullptr, 0);
        const auto done = [&] { return answered.load() != before && now() >= answered.load() + kTakes; };
        while (!look(done, pause, kClientSpin) && !look(done, way.between, kClientLooks))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        took_us.push_back(static_cast<double>(now() - begin) / 1e3);
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
}

void measure(unsigned computing, const Way& client, const Way& server) {
    over = false;
    requests = answered = 0;
    std::vector<std::thread> others;
    for (unsigned i = 0; i < computing; ++i) {
        others.emplace_back([] {
            volatile uint64_t sum = 0;
            while (!over.load(std::memory_order_relaxed)) sum = sum + 1;
        });
    }
    std::vector<double> took_us;
    std::thread serves([&] { serve(server); });
    std::thread asks([&] { ask(client, took_us); });
    asks.join();
    over = true;
    serves.join();
    for (std::thread& each : others) each.join();
    std::sort(took_us.begin(), took_us.end());
    const auto quantile = [&](double q) {
        return took_us[std::min(took_us.size() - 1,
                                static_cast<size_t>(q * static_cast<double>(took_us.size())))];
    };
    std::printf("%2u compute   client: %-6s server: %-6s  p50 %8.1f us  p90 %8.1f  p99 %8.1f\n", computing,
                client.name, server.name, quantile(.5), quantile(.9), quantile(.99));
    std::fflush(stdout);
}

}  // namespace

int main() {
    const Way ways[] = {{"yield", yield}, {"pause", pause}, {"nap", nap}, {"sleep", nullptr}};
    for (const unsigned computing : {0u, std::thread::hardware_concurrency()}) {
        for (const Way& server : ways) {
            for (const Way& client : ways) {
                if (client.between) measure(computing, client, server);
            }
        }
    }
}
