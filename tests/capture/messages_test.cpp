// What libsmt.so notes of a program's calls, and when the server gets it. The test stands in for the rest of
// the client: it says what state the process is in, and holds the server's end of the socket.
#include "runtime/jit/messages.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "interpose/capture/message.h"
#include "interpose/capture/programs.h"
#include "interpose/process/session.h"
#include "interpose/process/state.h"
#include "runtime/server/control_message.h"

namespace {
int client_socket = -1;
}

namespace smt::interpose {
constinit std::atomic<State> process_state{State::kFresh};
constinit Session sessions[kMostSessions]{};
constinit std::atomic<uint32_t> session_count{1};
constinit thread_local Session* thread_session = &sessions[0];
int Session::control_socket() const { return client_socket; }
}  // namespace smt::interpose

using namespace smt;
using namespace smt::interpose;
using namespace smt::interpose::capture;

namespace {

struct Server {
    Server() {
        int pair[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        REQUIRE(fcntl(pair[1], F_SETFL, O_NONBLOCK) == 0);
        client_socket = pair[0];
        socket = pair[1];
    }
    ~Server() {
        close(client_socket);
        close(socket);
    }
    // The bytes of the next message; empty: there is none.
    std::string next() {
        runtime::server::ControlMessage message;
        if (!message.receive(socket)) return "";
        auto captured = message.as<protocol::Captured>(protocol::ControlKind::kCaptured);
        REQUIRE(captured);
        std::string bytes(captured->bytes, '\0');
        REQUIRE(pread(message.file(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
        return bytes;
    }
    int socket;
};

nvrtcProgram handle(uintptr_t number) { return reinterpret_cast<nvrtcProgram>(number); }

Bytes text(const char* what) {
    Bytes bytes;
    bytes.string(what);
    return bytes;
}

void show_text(const char* what) {
    Bytes bytes = text(what);
    show(bytes);
}

}  // namespace

TEST_CASE("messages wait for the session", "[capture]") {
    Server server;
    process_state = State::kFresh;
    show_text("first");
    process_state = State::kLocal;
    show_text("second");
    CHECK(server.next().empty());
    const uint32_t before = shown();
    process_state = State::kRemote;
    show_waiting();
    CHECK_THAT(server.next(), Catch::Contains("first"));
    CHECK_THAT(server.next(), Catch::Contains("second"));
    CHECK(shown() == before + 2);
    show_waiting();
    CHECK(server.next().empty());
    show_text("third");
    CHECK_THAT(server.next(), Catch::Contains("third"));
    for (State gone : {State::kNative, State::kForked}) {
        process_state = gone;
        show_text("nobody's");
    }
    process_state = State::kRemote;
    show_waiting();
    CHECK(server.next().empty());
    CHECK(shown() == before + 3);
}

TEST_CASE("no more waits than a bound, in number and size", "[capture]") {
    Server server;
    process_state = State::kLocal;
    for (int i = 0; i < kMostWaiting + 5; ++i) show_text("one of many");
    process_state = State::kRemote;
    show_waiting();
    int count = 0;
    while (!server.next().empty()) ++count;
    CHECK(count == kMostWaiting);

    process_state = State::kLocal;
    const std::string large(protocol::kMostCapturedBytes / 2 + 100, 'x');
    show_text(large.c_str());
    show_text(large.c_str());
    process_state = State::kRemote;
    show_waiting();
    CHECK(server.next().size() > large.size());
    CHECK(server.next().empty());
}

TEST_CASE("a server that does not read is not waited for", "[capture]") {
    Server server;
    process_state = State::kRemote;
    const uint32_t before = shown();
    for (int i = 0; i < 2000; ++i) show_text("and on");
    const uint32_t taken = shown() - before;
    CHECK(taken < 2000);
    uint32_t count = 0;
    while (!server.next().empty()) ++count;
    CHECK(count == taken);
}

TEST_CASE("what a program told NVRTC is in the message about its image", "[capture]") {
    const char* names[] = {"a.h", "b.h"};
    const char* texts[] = {"A", "B"};
    const char* options[] = {"-arch=sm_90", "-Iinclude"};
    Bytes message;
    CHECK(!describe_image(handle(1), Taken::kPtx, "image", 6, message));  // it is unknown
    note_created(handle(1), "text", nullptr, {2, texts, names});
    note_created(handle(2), "other", "other.cu", {0, nullptr, nullptr});
    note_name_expression(handle(1), "f<int>");
    CHECK(!describe_image(handle(1), Taken::kPtx, "image", 6, message));  // not compiled
    note_compiled(handle(1), 2, options);
    REQUIRE(describe_image(handle(1), Taken::kPtx, "image", 6, message));

    protocol::Reader reader(message.data, message.size);
    char directory[PATH_MAX];
    CHECK(runtime::jit::read_string(reader) == getcwd(directory, sizeof directory));
    runtime::jit::Source source = runtime::jit::read_source(reader);
    CHECK(source.name == "default_program");
    CHECK(source.text == "text");
    CHECK(source.headers == decltype(source.headers){{"a.h", "A"}, {"b.h", "B"}});
    CHECK(source.options == std::vector<std::string>{"-arch=sm_90", "-Iinclude"});
    CHECK(source.name_expressions == std::vector<std::string>{"f<int>"});
    uint64_t count = 0;
    const char* image = reader.array<char>(count);
    CHECK(std::string(image, count) == std::string("image", 6));
    CHECK((reader.good() && reader.left() == 0));
    message.release();

    CHECK(!describe_image(handle(1), Taken::kPtx, "image", 6, message));  // once is enough
    CHECK(describe_image(handle(1), Taken::kCubin, "cubin", 6, message));
    message.release();
    note_compiled(handle(1), 0, nullptr);  // again, with other options
    CHECK(describe_image(handle(1), Taken::kPtx, "image", 6, message));
    message.release();
    forget_program(handle(1));
    CHECK(!describe_image(handle(1), Taken::kCubin, "cubin", 6, message));
    forget_program(handle(2));
    forget_program(handle(3));
}

TEST_CASE("a source that is too large is not shown", "[capture]") {
    const std::string large(protocol::kMostCapturedBytes, 'x');
    note_created(handle(1), large.c_str(), "large.cu", {0, nullptr, nullptr});
    note_compiled(handle(1), 0, nullptr);
    Bytes message;
    CHECK(!describe_image(handle(1), Taken::kPtx, "image", 6, message));
    forget_program(handle(1));
}
