// The control socket of a session: captured sources, good and bad, and what its kernels know of their managed
// form.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/jit/messages.h"
#include "runtime/server/code/code_table.h"
#include "tests/wire/server.h"

namespace smt::tests {
namespace {

using namespace protocol;
using namespace std::chrono_literals;

// A memory file; the caller closes it.
int file_of(const std::string& bytes) {
    int file = memfd_create("test", MFD_CLOEXEC);
    REQUIRE(write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    return file;
}

void put(std::string& to, uint64_t value) { to.append(reinterpret_cast<const char*>(&value), sizeof value); }
void put(std::string& to, const std::string& text) {
    put(to, text.size() + 1);
    to += text + std::string(8 - text.size() % 8, '\0');
}

std::string captured(const std::string& image) {
    std::string bytes;
    for (const char* text : {"/folder", "name.cu", "text"}) put(bytes, text);
    for (int list = 0; list < 3; ++list) put(bytes, 0);
    put(bytes, image.size());
    return bytes + image + std::string((8 - image.size() % 8) % 8, '\0');
}

void send_captured(TestSession& client, uint64_t bytes, int file) {
    Captured message;
    message.bytes = bytes;
    client.send_control(&message, sizeof message, file);
    if (file >= 0) close(file);
}

TEST_CASE("captured sources that are none do no harm", "[control]") {
    TestSession client;
    const std::string good = captured("// an image");
    uint32_t sent = 0;
    auto send_it = [&](uint64_t bytes, int file) {
        send_captured(client, bytes, file);
        client.session().await_captures(++sent, 60s);
        client.open_lane();
    };
    send_it(good.size(), file_of(good));
    send_it(good.size(), -1);
    send_it(good.size() + 1, file_of(good));
    send_it(~0ull, file_of(good));
    send_it(kMostCapturedBytes, file_of(good));
    send_it(0, file_of(""));
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    send_it(8, pipe_ends[0]);  // the server must not wait for it
    close(pipe_ends[1]);
    for (size_t cut = 8; cut < good.size(); cut += 8) send_it(cut, file_of(good));
    for (size_t at = 0; at < good.size(); at += 8) {
        std::string wild = good;
        std::memset(wild.data() + at, 0xff, 8);
        send_it(wild.size(), file_of(wild));
    }
    CHECK(!client.hung_up());
}

TEST_CASE("what is no control message ends the session", "[control]") {
    const uint32_t kind = static_cast<uint32_t>(ControlKind::kCaptured);
    char packet[512] = {};
    std::memcpy(packet, &kind, sizeof kind);
    for (size_t bytes : {sizeof kind, sizeof(Captured) - 1, sizeof(Captured) + 1, sizeof packet}) {
        TestSession client;
        client.open_lane();
        const int file = file_of("x");
        client.send_control(packet, bytes, file);
        close(file);
        client.await_end();
    }
}

TEST_CASE("captured sources that never come are not waited for", "[control]") {
    TestSession client;
    const uint64_t began = runtime::journal::now_ns();
    client.session().await_captures(7, 50ms);
    CHECK(runtime::journal::now_ns() - began >= 50'000'000);
}

TEST_CASE("a kernel of a managed image knows its managed form, and how it is run", "[control]") {
    TestSession client;
    client.open_lane();
    runtime::server::Session& session = client.session();
    TestServer::get().device().enter_thread();
    auto compiled = std::make_shared<runtime::jit::Result>();
    compiled->kernels = {{"plain", "plain", "smt_plain", "", Reuse::kAlways},
                         {"alone", "alone", "smt_alone", "", Reuse::kNever},
                         {"refused", "refused", "", "it is", Reuse::kAlways},
                         {"lost", "lost", "smt_lost", "", Reuse::kAlways}};
    const char image[] =
        "FAKE\nkernel plain\nkernel smt_plain params 56\nkernel alone\nkernel smt_alone params 56\nkernel "
        "refused\nkernel lost\n";
    auto& code = session.code();
    auto fetch = [&](uint32_t id, const char* name) {
        runtime::server::LoadedKernel* kernel = nullptr;
        REQUIRE(code.fetch(id, name, &kernel) == CUDA_SUCCESS);
        return kernel;
    };
    auto told = [&](uint32_t id, const char* name, const char* words) {
        return fetch(id, name)->treatment == session.journal().name(words);
    };
    for (ImageOwner owner : {ImageOwner::kModule, ImageOwner::kLibrary}) {
        CUmodule module = nullptr;
        CUlibrary library = nullptr;
        if (owner == ImageOwner::kModule)
            REQUIRE(session.driver().cuModuleLoadData(&module, image) == CUDA_SUCCESS);
        else
            REQUIRE(session.driver().cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr,
                                                       0) == CUDA_SUCCESS);
        const uint32_t id = code.add(owner, module, library, {}, {}, "", {}, {compiled, "", nullptr, {}});
        CHECK(fetch(id, "plain")->managed.load()->function == fetch(id, "smt_plain")->function);
        CHECK(fetch(id, "plain")->managed.load()->reuse == Reuse::kAlways);
        CHECK(fetch(id, "alone")->managed.load()->function == fetch(id, "smt_alone")->function);
        CHECK(fetch(id, "alone")->managed.load()->reuse == Reuse::kNever);
        CHECK(fetch(id, "refused")->managed.load() == nullptr);
        CHECK(fetch(id, "lost")->managed.load() == nullptr);
        CHECK(fetch(id, "smt_plain")->managed.load() == nullptr);
        CHECK(told(id, "plain", "managed by source"));
        CHECK(told(id, "refused", "unmanaged: it is"));
        CHECK(told(id, "lost", "unmanaged: the driver does not take its managed form"));
        REQUIRE(code.unload(*code.withdraw(id)) == CUDA_SUCCESS);
    }
    // An entry of the table that is used again remembers nothing.
    const char plain[] = "FAKE\nkernel plain\nkernel alone\nkernel refused\nkernel lost\n";
    CUmodule module = nullptr;
    REQUIRE(session.driver().cuModuleLoadData(&module, plain) == CUDA_SUCCESS);
    const uint32_t id =
        code.add(ImageOwner::kModule, module, nullptr, {}, {}, "", {}, {nullptr, "no reason", compiled, {}});
    for (const char* name : {"plain", "alone", "refused", "lost"}) {
        CHECK(fetch(id, name)->managed.load() == nullptr);
    }
    CHECK(told(id, "plain", "unmanaged: no reason"));
    CHECK(told(id, "refused", "unmanaged: it is"));  // what was said of it when its image was looked at
    CHECK(code.unload(*code.withdraw(id)) == CUDA_SUCCESS);
    // Takes the lock that the session takes before it frees its code: to a sanitizer, the socket orders
    // nothing.
    session.device_bytes();
}

// The state of this process's thread of that number: 'R' runs, 'S' sleeps.
char state_of(pid_t thread) {
    char text[512] = {};
    const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, text, sizeof text - 1) <= 0) give_up("the thread is there");
    close(file);
    return std::strrchr(text, ')')[2];
}

TEST_CASE("a thread that unloads a kernel sleeps while a launch of it is under way", "[control]") {
    TestSession client;
    client.open_lane();
    TestServer::get().device().enter_thread();
    runtime::server::Session& session = client.session();
    const char image[] = "FAKE\nkernel plain\n";
    CUmodule module = nullptr;
    REQUIRE(session.driver().cuModuleLoadData(&module, image) == CUDA_SUCCESS);
    auto& code = session.code();
    const uint32_t id = code.add(ImageOwner::kModule, module, nullptr, {}, {}, "", {}, {});
    runtime::server::LoadedKernel* kernel = nullptr;
    REQUIRE(code.fetch(id, "plain", &kernel) == CUDA_SUCCESS);
    std::optional<runtime::server::KernelUse> launch(std::in_place, code, kernel->id);
    REQUIRE(*launch);
    std::atomic<pid_t> unloader{0};
    std::thread unloading([&] {
        TestServer::get().device().enter_thread();
        unloader.store(static_cast<pid_t>(syscall(SYS_gettid)));
        CHECK(code.unload(*code.withdraw(id)) == CUDA_SUCCESS);
    });
    await([&] { return !kernel->live.load(); }, "the unload has begun");
    await([&] { return state_of(unloader.load()) == 'S'; }, "the unload sleeps");
    launch.reset();
    unloading.join();
}

TEST_CASE("a hundred sessions are served at a time", "[control]") {
    std::vector<std::unique_ptr<TestSession>> all;
#ifdef __SANITIZE_THREAD__
    constexpr int kSessions = 10;
#else
    constexpr int kSessions = 100;
#endif
    for (int i = 0; i < kSessions; ++i) all.push_back(std::make_unique<TestSession>());
    CHECK(all.back()->open_lane().call(Op::kMemInfo).status == CUDA_SUCCESS);
}

}  // namespace
}  // namespace smt::tests
