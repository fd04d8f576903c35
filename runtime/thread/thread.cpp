#include "runtime/thread/thread.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <system_error>

namespace smt::runtime {

namespace {

constexpr auto kPause = std::chrono::milliseconds(100);  // before a body that threw runs again
constexpr size_t kShownBytes = 15;                       // of a thread's name, by the system

struct Work {
    ThreadName name;
    Thread::Body body;
    Thread::Failed failed;
    bool again = false;
};

void log_to_stderr(const std::string& line) {
    const std::string whole = line + "\n";
    if (write(STDERR_FILENO, whole.data(), whole.size()) < 0) return;
}

Thread::Log log = log_to_stderr;

std::string title(const ThreadName& name) {
    return "thread '" + name.name + "'" + (name.tenant.empty() ? "" : " of " + name.tenant);
}

// What failed is often memory, so neither the text nor the log may fail for the same reason.
template <typename Step>
void attempt(Step step) noexcept {
    try {
        step();
    } catch (...) {
    }
}

void run(const Work& work) noexcept {
    attempt([&] { pthread_setname_np(pthread_self(), work.name.name.substr(0, kShownBytes).c_str()); });
    while (true) {
        std::string why;
        try {
            return work.body();
        } catch (const std::exception& error) {
            attempt([&] { why = error.what(); });
        } catch (...) {
            attempt([&] { why = "an exception of unknown type"; });
        }
        attempt([&] {
            log(title(work.name) +
                (work.again ? " starts again after an exception: " : " ended by an exception: ") + why);
        });
        attempt([&] {
            if (work.failed) work.failed(why);
        });
        if (!work.again) return;
        std::this_thread::sleep_for(kPause);
    }
}

std::string make(Work work, std::thread& thread) {
    std::string why;
    const std::string name = title(work.name);
    try {
        auto shared = std::make_shared<const Work>(std::move(work));
        thread = std::thread([shared] { run(*shared); });
        return why;
    } catch (const std::system_error& error) {
        why = error.what();
    } catch (const std::bad_alloc&) {
        why = "out of memory";
    }
    return "the system gives no " + name + ": " + why +
           " (limits: RLIMIT_NPROC, pids.max of the control group)";
}

}  // namespace

std::string Thread::start(ThreadName name, Body body, Failed failed) {
    return make({std::move(name), std::move(body), std::move(failed), false}, thread_);
}

std::string Thread::serve(ThreadName name, Body body, Failed failed) {
    return make({std::move(name), std::move(body), std::move(failed), true}, thread_);
}

std::string Thread::detach(ThreadName name, Body body, Failed failed) {
    std::thread thread;
    std::string why = make({std::move(name), std::move(body), std::move(failed), false}, thread);
    if (thread.joinable()) thread.detach();
    return why;
}

void Thread::join() {
    if (thread_.joinable()) thread_.join();
}

void Thread::log_with(Log with) { log = with; }

}  // namespace smt::runtime
