// What the fake was asked, and which calls it was told to fail.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "fake.h"

namespace fake {

namespace {

std::atomic<int> fatal{CUDA_SUCCESS};

struct Failure {
    std::string name;
    uint64_t at;  // 0: every call
    CUresult error;
};

struct Orders {
    int file = -1;
    std::vector<Failure> failures;
    std::mutex mutex;
    std::map<std::string, uint64_t> calls;

    Orders() {
        if (const char* path = getenv("SMT_FAKE_RECORD"))
            file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        const char* rest = getenv("SMT_FAKE_FAIL");
        while (rest && *rest) {
            const size_t bytes = strcspn(rest, ",");
            char name[128], at[32];
            int error = 0;
            if (sscanf(std::string(rest, bytes).c_str(), "%127[^:]:%31[^:]:%d", name, at, &error) == 3) {
                failures.push_back({name, strtoull(at, nullptr, 10), static_cast<CUresult>(error)});
            }
            rest += bytes;
            if (*rest) ++rest;
        }
    }

    CUresult failure(const char* name) {
        if (failures.empty()) return CUDA_SUCCESS;
        std::lock_guard lock(mutex);
        const uint64_t call = ++calls[name];
        for (const Failure& failure : failures) {
            if (failure.name == name && (failure.at == 0 || failure.at == call)) return failure.error;
        }
        return CUDA_SUCCESS;
    }
};

Orders& orders() {
    static Orders* given = new Orders;  // never destroyed: streams' threads outlive main()
    return *given;
}

}  // namespace

CUresult record(const char* name, const char* format, va_list arguments) {
    Orders& now = orders();
    if (now.file >= 0) {
        char line[512];
        int used = snprintf(line, sizeof line, "%s", name);
        if (format) {
            line[used++] = ' ';
            used += vsnprintf(line + used, sizeof line - used - 1, format, arguments);
            if (used > static_cast<int>(sizeof line) - 2) used = sizeof line - 2;
        }
        const char* queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
        if (queues && strcmp(name, "cuInit") == 0)  // where the driver reads it
            used += snprintf(line + used, sizeof line - used - 1, " connections=%.15s", queues);
        line[used++] = '\n';
        if (write(now.file, line, used) < 0) perror("SMT_FAKE_RECORD");
    }
    const CUresult failure = now.failure(name);
    return failure != CUDA_SUCCESS ? failure : static_cast<CUresult>(fatal.load());
}

void fault(CUresult error) {
    int none = CUDA_SUCCESS;
    fatal.compare_exchange_strong(none, error);
}

}  // namespace fake
