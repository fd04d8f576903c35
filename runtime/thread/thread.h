// The one place that starts threads in the server.
//
// What a thread's body throws ends at its top: it is logged with the thread's name and the tenant, and `failed` ends what the
// thread belongs to (a lane's session, a connection). It never ends the process. A thread that the system does not give is an
// answer, not an exception: start() says why, and the caller refuses what needed the thread.
//
//   std::string why = thread_.start({"lane 3", "alice"}, [this] { run(); }, [this](const std::string& why) { end(why); });
//   std::string why = thread_.serve({"dispatcher"}, [this] { run(); });      the server's own: goes on after an exception
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace smt::runtime {

struct ThreadName {
    std::string name;     // the system shows the first 15 bytes
    std::string tenant;   // empty: the server's own
};

class Thread {
public:
    using Body = std::function<void()>;
    using Failed = std::function<void(const std::string& why)>;   // on the thread that failed
    using Log = void (*)(const std::string& line);

    Thread() = default;
    ~Thread() { join(); }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    // Each returns an empty string, or why there is no thread.
    // The body runs once; if it throws, `failed` is called.
    [[nodiscard]] std::string start(ThreadName name, Body body, Failed failed = {});
    // The body runs until it returns: when it throws, `failed` is called and it runs again a moment later.
    [[nodiscard]] std::string serve(ThreadName name, Body body, Failed failed = {});
    // As start(), and the thread belongs to no object.
    [[nodiscard]] static std::string detach(ThreadName name, Body body, Failed failed = {});

    bool joinable() const { return thread_.joinable(); }
    void join();   // no-op where there is no thread

    // Where failures are logged; by default on stderr. Before the first thread.
    static void log_with(Log log);

private:
    std::thread thread_;
};

}  // namespace smt::runtime
