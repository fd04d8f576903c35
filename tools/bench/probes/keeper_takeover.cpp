// Does memory of smt-keeper outlive a process whose context is lost, and how fast does another process have
// it?
//
//   keeper_takeover [--gib N] [--chunk-mib N] [--rounds N] [--ways illegal,trap,kill] [--keeper PATH]
//                   [--driver PATH] [--plain]
//
// Each round: a process makes N GiB in chunks through the keeper, maps and fills them, and ends its context
// by an illegal access, a trap, or SIGKILL. A process that had its context before (warm) maps the chunks at
// the same addresses while the first one is still there (but for SIGKILL), and checks every word; then one
// that is started anew (cold) does the same. Times are in ms, one JSON row a process. --plain: no kernels,
// for a driver that runs none; ways are SIGKILL then. Exit code 0: no word was lost.
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/keeper/client.h"
#include "tools/bench/probes/keeper_kernels.h"

namespace {

using smt::runtime::keeper::Client;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kBase = 0x2000'4000'0000;
constexpr unsigned kBlocks = 1024, kThreads = 256;

#define DRIVER_FUNCTIONS(X)                                             \
    X(cuInit, "cuInit")                                                 \
    X(cuDeviceGet, "cuDeviceGet")                                       \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")             \
    X(cuCtxSetCurrent, "cuCtxSetCurrent")                               \
    X(cuMemAddressReserve, "cuMemAddressReserve")                       \
    X(cuMemMap, "cuMemMap")                                             \
    X(cuMemSetAccess, "cuMemSetAccess")                                 \
    X(cuMemRelease, "cuMemRelease")                                     \
    X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle") \
    X(cuModuleLoadData, "cuModuleLoadData")                             \
    X(cuModuleGetFunction, "cuModuleGetFunction")                       \
    X(cuLaunchKernel, "cuLaunchKernel")                                 \
    X(cuStreamSynchronize, "cuStreamSynchronize")                       \
    X(cuMemAlloc, "cuMemAlloc_v2")                                      \
    X(cuMemsetD32Async, "cuMemsetD32Async")                             \
    X(cuMemcpyDtoH, "cuMemcpyDtoH_v2")
struct Driver {
#define X(name, symbol) decltype(&::name) name = nullptr;
    DRIVER_FUNCTIONS(X)
#undef X
};
Driver driver;

struct Options {
    uint64_t gib = 1, chunk_mib = 64;
    int rounds = 1;
    std::string ways = "illegal,trap,kill", keeper = "smt-keeper", driver = "libcuda.so.1";
    bool plain = false;
};
Options options;

void need(CUresult status, const char* what, int line) {
    if (status == CUDA_SUCCESS) return;
    std::printf("{\"error\": \"line %d: %s: %d\"}\n", line, what, static_cast<int>(status));
    std::fflush(stdout);
    _exit(1);
}
#define NEED(call) need(call, #call, __LINE__)
#define REQUIRE(condition) need((condition) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, #condition, __LINE__)

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Rows of one process.
struct Row {
    explicit Row(const std::string& what) : text("{\"process\": \"" + what + "\"") {}
    void add(const char* key, double value) {
        char number[64];
        std::snprintf(number, sizeof number, ", \"%s\": %.3f", key, value);
        text += number;
    }
    void say() const { std::printf("%s}\n", text.c_str()), std::fflush(stdout); }
    std::string text;
};

void load_driver() {
    void* library = dlopen(options.driver.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) std::fprintf(stderr, "%s\n", dlerror()), _exit(1);
#define X(name, symbol) driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, symbol));
    DRIVER_FUNCTIONS(X)
#undef X
}

CUmodule module = nullptr;

void open_context(Row& row) {
    const auto start = Clock::now();
    load_driver();
    CUdevice device = 0;
    CUcontext context = nullptr;
    NEED(driver.cuInit(0));
    NEED(driver.cuDeviceGet(&device, 0));
    NEED(driver.cuDevicePrimaryCtxRetain(&context, device));
    NEED(driver.cuCtxSetCurrent(context));
    if (!options.plain) NEED(driver.cuModuleLoadData(&module, kKernels));
    row.add("context", ms_since(start));
}

void launch(const char* name, std::vector<void*> parameters, unsigned blocks = kBlocks) {
    CUfunction function = nullptr;
    NEED(driver.cuModuleGetFunction(&function, module, name));
    NEED(driver.cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, nullptr, parameters.data(),
                               nullptr));
}

CUmemGenericAllocationHandle import(const Client::Given& given) {
    CUmemGenericAllocationHandle handle = 0;
    NEED(driver.cuMemImportFromShareableHandle(&handle,
                                               reinterpret_cast<void*>(static_cast<intptr_t>(given.file)),
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(given.file);
    return handle;
}

void reserve() {
    CUdeviceptr got = 0;
    NEED(driver.cuMemAddressReserve(&got, options.gib << 30, 2ull << 20, kBase, 0));
    REQUIRE(got == kBase);
}

// Of the n-th chunk: they are listed as they were made.
CUdeviceptr base_of(size_t n) { return kBase + n * (options.chunk_mib << 20); }

void map(size_t n, const Client::Given& given, CUmemGenericAllocationHandle handle) {
    NEED(driver.cuMemMap(base_of(n), given.chunk.bytes, 0, handle, 0));
    NEED(driver.cuMemRelease(handle));
}

void give_access() {
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    NEED(driver.cuMemSetAccess(kBase, options.gib << 30, &access, 1));
}

void wait_for_gpu() { NEED(driver.cuStreamSynchronize(nullptr)); }

void fill(size_t n, const Client::Given& given) {
    CUdeviceptr base = base_of(n);
    uint64_t words = given.chunk.bytes / 8, seed = base;
    if (options.plain) {
        NEED(driver.cuMemsetD32Async(base, static_cast<uint32_t>(base >> 20), 2 * words, nullptr));
    } else {
        launch("fill", {&base, &words, &seed});
    }
}

uint64_t wrong_words(const std::vector<Client::Given>& all) {
    uint64_t wrong = 0;
    CUdeviceptr counter = 0;
    if (!options.plain) {
        NEED(driver.cuMemAlloc(&counter, 8));
        NEED(driver.cuMemsetD32Async(counter, 0, 2, nullptr));
    }
    for (size_t n = 0; n < all.size(); ++n) {
        CUdeviceptr base = base_of(n);
        uint64_t words = all[n].chunk.bytes / 8, seed = base;
        if (!options.plain) {
            launch("check", {&base, &words, &seed, &counter});
            continue;
        }
        std::vector<uint32_t> read(2 * words);
        NEED(driver.cuMemcpyDtoH(read.data(), base, all[n].chunk.bytes));
        for (uint32_t word : read) wrong += word != static_cast<uint32_t>(base >> 20);
    }
    wait_for_gpu();
    if (!options.plain) NEED(driver.cuMemcpyDtoH(&wrong, counter, 8));
    return wrong;
}

void wait_for_word() {
    char byte = 0;
    REQUIRE(read(0, &byte, 1) >= 0);
}

// The first process: makes, fills, says "ready", waits for a word, and faults.
void run_victim(const std::string& way) {
    Row row("victim " + way);
    open_context(row);
    Client client(3);
    reserve();
    std::vector<Client::Given> all;
    const uint64_t bytes = options.chunk_mib << 20, count = (options.gib << 30) / bytes;
    auto start = Clock::now();
    for (uint64_t i = 0; i < count; ++i) {
        Client::Given given;
        NEED(static_cast<CUresult>(client.create(bytes, &given)));
        map(i, given, import(given));
        all.push_back(given);
    }
    give_access();
    row.add("make", ms_since(start));
    row.add("chunks", static_cast<double>(count));
    start = Clock::now();
    for (size_t n = 0; n < all.size(); ++n) fill(n, all[n]);
    wait_for_gpu();
    row.add("fill", ms_since(start));
    row.say();
    wait_for_word();
    if (way == "kill") kill(getpid(), SIGKILL);
    launch(way == "trap" ? "traps" : "illegal", {}, 1);
    start = Clock::now();
    const CUresult status = driver.cuStreamSynchronize(nullptr);
    Row fault("fault " + way);
    fault.add("error", static_cast<double>(status));
    fault.add("seen", ms_since(start));
    fault.say();
    wait_for_word();  // it stays, as a server does that hands its sessions over
    _exit(0);
}

// warm: the context is there, and the row begins with the word; cold: both begin with the process.
void run_heir(bool warm, bool last) {
    Row row(warm ? "warm" : "cold");
    auto begun = Clock::now();
    open_context(row);
    Client client(3);
    if (warm) {
        reserve();
        std::puts("{\"process\": \"warm\", \"ready\": 1}"), std::fflush(stdout);
        wait_for_word();
        begun = Clock::now();
    } else {
        reserve();
    }
    std::vector<Client::Given> all;
    auto start = Clock::now();
    NEED(static_cast<CUresult>(client.list(&all)));
    row.add("list", ms_since(start));
    start = Clock::now();
    std::vector<CUmemGenericAllocationHandle> handles;
    for (const Client::Given& each : all) handles.push_back(import(each));
    row.add("import", ms_since(start));
    start = Clock::now();
    for (size_t i = 0; i < all.size(); ++i) map(i, all[i], handles[i]);
    give_access();
    row.add("map", ms_since(start));
    row.add("total", ms_since(begun));
    start = Clock::now();
    const uint64_t wrong = wrong_words(all);
    row.add("check", ms_since(start));
    row.add("chunks", static_cast<double>(all.size()));
    row.add("wrong_words", static_cast<double>(wrong));
    row.say();
    for (const Client::Given& each : all)
        if (last) NEED(static_cast<CUresult>(client.release(each.chunk.id)));
    _exit(wrong == 0 && all.size() == (options.gib << 30) / (options.chunk_mib << 20) ? 0 : 1);
}

// A child of this program with a client's socket.
struct Child {
    Child(Client& keeper, const std::string& role) {
        int ends[2], in[2], out[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        REQUIRE(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
        NEED(static_cast<CUresult>(keeper.add_client(ends[1])));
        pid = fork();
        if (pid == 0) {
            dup2(in[0], 0), dup2(out[1], 1);
            const int high = fcntl(ends[0], F_DUPFD_CLOEXEC, 10);
            dup2(high, 3);
            const std::string gib = std::to_string(options.gib), chunk = std::to_string(options.chunk_mib);
            execl("/proc/self/exe", "keeper_takeover", "--role", role.c_str(), "--gib", gib.c_str(),
                  "--chunk-mib", chunk.c_str(), "--driver", options.driver.c_str(),
                  options.plain ? "--plain" : nullptr, nullptr);
            _exit(127);
        }
        for (int file : {ends[0], ends[1], in[0], out[1]}) close(file);
        input = in[1];
        output = fdopen(out[0], "r");
    }
    ~Child() {
        fclose(output);
        close(input);
    }
    void go() const { REQUIRE(write(input, "g", 1) == 1); }
    bool row() const {  // passes one row on
        char line[500];
        if (!fgets(line, sizeof line, output)) return false;
        std::fputs(line, stdout), std::fflush(stdout);
        return !std::strstr(line, "\"error\": \"");
    }
    int end() const {
        int status = 0;
        waitpid(pid, &status, 0);
        return status;
    }
    pid_t pid = -1;
    int input = -1;
    FILE* output = nullptr;
};

bool round_of(Client& keeper, const std::string& way) {
    const Child victim(keeper, "victim-" + way), warm(keeper, "warm");
    if (!victim.row() || !warm.row()) return false;
    victim.go();
    if (way == "kill") {
        const auto start = Clock::now();
        victim.end();
        Row gone("fault kill");
        gone.add("gone", ms_since(start));
        gone.say();
    } else if (!victim.row()) {
        return false;
    }
    warm.go();
    bool good = warm.row();
    good = warm.end() == 0 && good;
    if (way != "kill") {
        const auto start = Clock::now();
        kill(victim.pid, SIGKILL);
        victim.end();
        Row gone("end " + way);
        gone.add("gone", ms_since(start));
        gone.say();
    }
    const auto start = Clock::now();
    const Child cold(keeper, "cold");
    good = cold.row() && good;
    good = cold.end() == 0 && good;
    Row all("cold from start to end");
    all.add("total", ms_since(start));
    all.say();
    return good;
}

}  // namespace

int main(int count, char** arguments) {
    std::string role;
    for (int i = 1; i < count; ++i) {
        const std::string name = arguments[i];
        const std::string value = i + 1 < count ? arguments[i + 1] : "";
        if (name == "--plain") {
            options.plain = true;
            continue;
        }
        ++i;
        if (name == "--gib") options.gib = std::strtoull(value.c_str(), nullptr, 10);
        if (name == "--chunk-mib") options.chunk_mib = std::strtoull(value.c_str(), nullptr, 10);
        if (name == "--rounds") options.rounds = std::atoi(value.c_str());
        if (name == "--ways") options.ways = value;
        if (name == "--keeper") options.keeper = value;
        if (name == "--driver") options.driver = value;
        if (name == "--role") role = value;
    }
    signal(SIGPIPE, SIG_IGN);
    if (role.rfind("victim-", 0) == 0) run_victim(role.substr(7));
    if (role == "warm") run_heir(true, false);
    if (role == "cold") run_heir(false, true);
    const auto start = Clock::now();
    const auto started = smt::runtime::keeper::start(options.keeper, options.driver);
    if (started.socket < 0) return std::fprintf(stderr, "%s\n", started.problem.c_str()), 1;
    Client keeper(started.socket);
    Row row("keeper");
    row.add("start", ms_since(start));
    row.say();
    bool good = true;
    for (int round = 0; round < options.rounds; ++round)
        for (const char* way : {"illegal", "trap", "kill"})
            if (("," + options.ways + ",").find(std::string(",") + way + ",") != std::string::npos)
                good = round_of(keeper, way) && good;
    std::printf("{\"result\": \"%s\"}\n", good ? "no word was lost" : "failed");
    return good ? 0 : 1;
}
