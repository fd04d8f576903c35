// Thread: starts all threads of the server.
//
// An exception of a thread's body never ends the process: it is logged with the thread's name and the tenant,
// and `failed` ends what the thread belongs to (a lane's session, a connection). Failure to create a thread
// is a result, not an exception: start() returns the reason, and the caller refuses the request that needed
// the thread.
//
//   // Lane thread: an exception ends the session.
//   std::string why = thread_.start({"lane 3", "alice"}, [this] { run(); },
//                                   [this](const std::string& why) { end(why); });
//   // The server's own thread: goes on after an exception.
//   std::string why = thread_.serve({"dispatcher"}, [this] { run(); });
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace smt::runtime {

struct ThreadName {
    std::string name;    // the system shows the first 15 bytes
    std::string tenant;  // empty: the server's own
};

class Thread {
public:
    using Body = std::function<void()>;
    using Failed = std::function<void(const std::string& why)>;  // called on the thread that failed
    using Log = void (*)(const std::string& line);

    Thread() = default;
    ~Thread() { join(); }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    // Each returns an empty string, or the reason why there is no thread.
    // The body runs once. If it throws, `failed` is called.
    [[nodiscard]] std::string start(ThreadName name, Body body, Failed failed = {});
    // The body runs until it returns. If it throws, `failed` is called and the body runs again after a short
    // pause.
    [[nodiscard]] std::string serve(ThreadName name, Body body, Failed failed = {});
    // Like start(), but no object owns the thread.
    [[nodiscard]] static std::string detach(ThreadName name, Body body, Failed failed = {});

    bool joinable() const { return thread_.joinable(); }
    void join();  // no-op without a thread

    // The destination of failures; default stderr. Call it before the first thread starts.
    static void log_with(Log log);

private:
    std::thread thread_;
};

}  // namespace smt::runtime
