// The worker and the server's end of it: good orders, and workers that crash, hang, end, fill their memory or
// talk nonsense.
#include "runtime/jit/compiler.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "runtime/jit/exports.h"
#include "tests/jit/sources.h"
#include "tests/unit/temporary_folder.h"

using namespace smt::runtime::jit;
using namespace smt::tests;
using namespace std::chrono_literals;
using Catch::Contains;

namespace {

Order order(const std::string& toy) { return {source(toy), Form::kPtx, ""}; }

// As /proc says it; Z also where there is none.
char state_of(pid_t process) {
    char state = 'Z';
    std::FILE* file = std::fopen(("/proc/" + std::to_string(process) + "/stat").c_str(), "r");
    if (!file || std::fscanf(file, "%*d %*s %c", &state) != 1) state = 'Z';
    if (file) std::fclose(file);
    return state;
}

void check_works(Compiler& compiler) {
    Result result = compiler.compile({managed_scale(), Form::kPtx, ""});
    INFO(result.reason << result.log);
    CHECK_THAT(result.image, Contains(".entry smt_scale"));
}

}  // namespace

TEST_CASE("the worker makes PTX and cubins with the managed kernels in them") {
    Compiler compiler(toy_settings());
    std::string problem;
    CHECK_THAT(compiler.nvrtc(problem), Contains("13."));
    CHECK(problem.empty());
    Source twice = source("//toy managed scale smt_scale single\n//toy refused other it is not there");
    Result ptx = compiler.compile({twice, Form::kPtx, ""});
    INFO(ptx.reason << ptx.log);
    REQUIRE(ptx.kernels.size() == 2);
    CHECK(ptx.kernels[0].symbol == "scale");
    CHECK(ptx.kernels[0].managed == "smt_scale");
    CHECK(ptx.kernels[0].reuse == smt::Reuse::kNever);
    CHECK(ptx.kernels[1].managed.empty());
    CHECK(ptx.kernels[1].reason == "it is not there");
    CHECK_THAT(ptx.image,
               Contains(".entry scale") && Contains(".entry smt_scale") && Contains(".target sm_90"));
    CHECK(ptx.lasting);
    const pid_t process = compiler.process();
    Source real = twice;
    real.options = {"--gpu-architecture=sm_90"};
    Result cubin = compiler.compile({real, Form::kCubin, ""});
    INFO(cubin.reason << cubin.log);
    CHECK(cubin.image.substr(0, 4) == "\177ELF");
    CHECK(missing_from(cubin.image, cubin.image).empty());
    CHECK(compiler.process() == process);
    // A compute architecture makes no machine code.
    CHECK_THAT(compiler.compile({twice, Form::kCubin, ""}).reason, Contains("no cubin"));
}

TEST_CASE("an indexed source is managed by its own PTX, where that manages as much") {
    Compiler compiler(toy_settings());
    const std::string by_ptx = ".b8 smt_launch[";  // the loop's parameter, as the PTX rewriter calls it
    Source given = managed_scale();
    for (const char* architecture : {"compute_90", "sm_90"}) {
        const Form form = architecture[0] == 's' ? Form::kCubin : Form::kPtx;
        Result result = compiler.compile({given, form, architecture});
        INFO(result.reason << result.log);
        CHECK_THAT(result.image, Contains(".entry smt_scale") && Contains(by_ptx));
        REQUIRE(result.kernels.size() == 1);
        CHECK(result.kernels[0].symbol == "scale");
        CHECK(result.kernels[0].managed == "smt_scale");
        CHECK(result.lasting);
    }
    CHECK_THAT(compiler.compile({given, Form::kPtx, ""}).image,
               !Contains(by_ptx));               // a program waits for this one
    Order own{given, Form::kPtx, "compute_90"};  // the image has PTX itself
    own.ptx =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry scale(.param .u64 a, .param .u32 n)\n"
        "{\n.reg .b32 %mine<2>;\nmov.u32 %mine1, %ctaid.x;\nret;\n}\n";
    CHECK_THAT(compiler.compile(own).image, Contains("%mine1") && Contains(by_ptx));
    // By PTX a worker would run one block of this.
    given.text.insert(given.text.find("int i = "), "if (a[threadIdx.x] > 7) return;\n__syncthreads();\n");
    Result source = compiler.compile({given, Form::kPtx, "compute_90"});
    INFO(source.reason << source.log);
    CHECK_THAT(source.image, Contains(".entry smt_scale") && !Contains(by_ptx));
}

TEST_CASE("headers, options and name expressions reach the worker's NVRTC") {
    Compiler compiler(toy_settings());
    TemporaryFolder folder;
    std::FILE* file = std::fopen(folder.file("from_file.h").c_str(), "w");
    REQUIRE(file);
    std::fputs("#define FROM_FILE 7\n", file);
    std::fclose(file);
    Source given = source("//toy managed scale smt_scale", R"(
#include "named.h"
#include "from_file.h"
template <typename T> __global__ void typed(T* a) { a[blockIdx.x] = NAMED + FROM_FILE + OPTION; }
)" + std::string(kScale));
    given.headers = {{"named.h", "#define NAMED 3\n"}};
    given.options.push_back("-DOPTION=5");
    given.options.push_back("-I" + folder.path());
    given.name_expressions = {"typed<int>"};
    Result result = compiler.compile({given, Form::kPtx, ""});
    INFO(result.reason << result.log);
    CHECK_THAT(result.image, Contains(".entry _Z5typedIiEvPT_") && Contains("15;"));
}

TEST_CASE("a text that does not compile is a lasting result with a reason") {
    Compiler compiler(toy_settings());
    Result broken = compiler.compile(order("//toy managed scale smt_scale\n__device__ int x = nonsense;"));
    CHECK(broken.image.empty());
    CHECK_THAT(broken.reason, Contains("nonsense") && Contains("undefined"));
    CHECK(broken.lasting);
    CHECK(broken.kernels.size() == 1);
    Result refused = compiler.compile(order("//toy refused scale it launches kernels"));
    CHECK_THAT(refused.reason, Contains("no kernel"));
    CHECK(refused.lasting);
    Result unread = compiler.compile(order("//toy error test.cu:3: what is this"));
    CHECK(unread.reason == "test.cu:3: what is this");
    CHECK(unread.lasting);
    check_works(compiler);
}

TEST_CASE("a worker that goes wrong costs one order") {
    Settings settings = toy_settings();
    settings.memory_bytes = 2ull << 30;
    const std::pair<const char*, const char*> ways[] = {{"crash", "Segmentation"},
                                                        {"hang", "longer than 20 s"},
                                                        {"exit", "exit code 7"},
                                                        {"garbage", "nonsense"},
                                                        {"lie", "nonsense"}};
    for (const auto& [way, reason] : ways) {
        settings.time = way == std::string("hang")
                            ? 20s
                            : 120s;  // what follows must compile in that time, on a busy machine too
        Compiler compiler(settings);
        Result result = compiler.compile(order(std::string("//toy ") + way));
        CHECK_THAT(result.reason, Contains(reason));
        CHECK(!result.lasting);
        CHECK(result.image.empty());
        check_works(compiler);
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("the worker's memory has a limit") {
    Settings settings = toy_settings();
    settings.memory_bytes = 2ull << 30;
    Compiler compiler(settings);
    Result result = compiler.compile(order("//toy memory"));
    CHECK_THAT(result.reason, Contains("bad_alloc"));
    CHECK(!result.lasting);
    check_works(compiler);
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("the worker reads files and starts threads, and nothing else") {
    Compiler compiler(toy_settings());
    TemporaryFolder folder;
    const std::string file = folder.file("there"), other = folder.file("written");
    std::ofstream(file) << "content";
    const auto attempt = [&](const std::string& what) {
        return compiler.compile(order("//toy try " + what)).reason;
    };
    for (const std::string& what :
         {"write " + other, "append " + file, "remove " + file, std::string("socket"), std::string("exec"),
          std::string("fork"), std::string("ptrace"), std::string("signal")}) {
        CHECK_THAT(attempt(what), Contains(what.substr(0, what.find(' ')) + ": ") && !Contains("done"));
    }
    CHECK(access(file.c_str(), F_OK) == 0);
    CHECK(access(other.c_str(), F_OK) != 0);
    CHECK(attempt("read " + file) == "read: done");
    CHECK(attempt("thread") == "thread: done");
    check_works(compiler);
    // What a kernel lacks is said; where this one has all, nothing is.
    const bool landlock = syscall(SYS_landlock_create_ruleset, nullptr, 0, 1u) > 0;
    CHECK(compiler.lacking().empty() == landlock);
}

TEST_CASE("the worker's CPU time has a limit") {
    Settings settings = toy_settings();
    settings.cpu = 1s;
    Compiler compiler(settings);
    Result result = compiler.compile(order("//toy spin"));
    CHECK_THAT(result.reason, Contains("CPU time limit"));
    CHECK(!result.lasting);
    check_works(compiler);
}
#endif

TEST_CASE("a worker that died between two orders is replaced") {
    Compiler compiler(toy_settings());
    check_works(compiler);
    const pid_t first = compiler.process();
    kill(first, SIGKILL);
    while (state_of(first) != 'Z') std::this_thread::yield();  // it is ours, and one until the compiler looks
    check_works(compiler);
    CHECK(compiler.process() != first);
}

TEST_CASE("no worker, no NVRTC and a worker that is none are reasons") {
    std::string problem;
    Settings settings = toy_settings();
    settings.compiler = "";
    CHECK_THAT(Compiler(settings).compile({managed_scale(), Form::kPtx, ""}).reason,
               Contains("no compile worker"));
    settings.compiler = "/bin/true";
    CHECK_THAT(Compiler(settings).compile({managed_scale(), Form::kPtx, ""}).reason, Contains("exit code 0"));
    settings.compiler = "/nowhere/smt-compile";
    CHECK_THAT(Compiler(settings).compile({managed_scale(), Form::kPtx, ""}).reason,
               Contains("does not start"));
    setenv("SMT_COMPILE", "nvrtc=/nowhere/libnvrtc.so.13", 1);
    Compiler compiler(toy_settings());
    CHECK(compiler.nvrtc(problem).empty());
    CHECK_THAT(problem, Contains("/nowhere/libnvrtc.so.13"));
    CHECK_THAT(compiler.compile({managed_scale(), Form::kPtx, ""}).reason,
               Contains("/nowhere/libnvrtc.so.13"));
    unsetenv("SMT_COMPILE");
}

TEST_CASE("a compile can be interrupted") {
    Compiler compiler(toy_settings());
    check_works(compiler);
    std::thread other([&compiler, worker = compiler.process()] {
        for (char state = 0; state != 'T' && state != 'Z'; state = state_of(worker))
            std::this_thread::yield();
        compiler.interrupt();
    });
    CHECK_THAT(compiler.compile(order("//toy hang")).reason, Contains("leaving"));
    other.join();
}

TEST_CASE("messages survive their way, and nonsense is refused") {
    Order given{managed_scale(), Form::kCubin, "sm_90"};
    given.source.headers = {{"a.h", "A"}, {"b.h", ""}};
    given.source.name_expressions = {"f<int>"};
    std::optional<Order> back = decode_order(encode(given));
    REQUIRE(back);
    CHECK(encode(*back) == encode(given));
    CHECK(back->source.headers == given.source.headers);
    const std::string bytes = encode(given);
    for (size_t cut = 0; cut < bytes.size(); ++cut)
        CHECK(!decode_order(std::string_view(bytes).substr(0, cut)));
    CHECK(!decode_order(bytes + "trailing"));
    given.inside = true;
    CHECK(encode(given) != bytes);  // a cached form has checks or has none
    CHECK(decode_order(encode(given))->inside);

    Result result;
    result.kernels.push_back({"k", "k", "smt_k", "", smt::Reuse::kAlways});
    result.kernels.push_back({"l", "l", "smt_l", "", smt::Reuse::kAlways});
    result.kernels[0].checked = smt::ptx::Effects{"", {{0}, {8, 16}}, {{24}}};
    result.kernels[1].unchecked = "it has no loop";
    std::optional<Result> made = decode_result(encode(result));
    REQUIRE(made);
    CHECK(made->kernels[0].checked == result.kernels[0].checked);
    CHECK(!made->kernels[1].checked);
    CHECK(made->kernels[1].unchecked == "it has no loop");
    const std::string whole = encode(result);
    for (size_t cut = 0; cut < whole.size(); ++cut)
        CHECK(!decode_result(std::string_view(whole).substr(0, cut)));

    const std::string many(8, '\xff');
    CHECK(!decode_result(many + many + many));
    CHECK(!decode_ready(many));
}
