// Where cuMemAddressReserve reserves, for hints where sessions of smt have their memory (address_plan.h):
// does a small range, a large one, one inside a gap get the address that was asked for, on one device and
// with others in the process?
//
//     reserved_addresses     needs a GPU
#include <cuda.h>

#include <cstdio>
#include <vector>

#define CHECK(call)                                                            \
    do {                                                                       \
        const CUresult status = call;                                          \
        if (status) return std::fprintf(stderr, "%s: %d\n", #call, status), 1; \
    } while (false)

namespace {

constexpr size_t kMiB = 1 << 20, kGiB = 1 << 30;

// False: it is not at `hint`. Keeps it, unless `drop`.
bool reserve(const char* what, size_t bytes, size_t alignment, CUdeviceptr hint, bool drop) {
    CUdeviceptr got = 0;
    const CUresult status = cuMemAddressReserve(&got, bytes, alignment, hint, 0);
    std::printf(
        "{\"what\": \"%s\", \"mib\": %zu, \"alignment\": %zu, \"hint\": \"%llx\", \"status\": %d, "
        "\"got\": \"%llx\", \"as asked\": %s}\n",
        what, bytes / kMiB, alignment, hint, status, got, got == hint ? "true" : "false");
    std::fflush(stdout);
    if (status == CUDA_SUCCESS && (drop || got != hint)) cuMemAddressFree(got, bytes);
    return got == hint;
}

}  // namespace

int main() {
    CHECK(cuInit(0));
    int devices = 0;
    CHECK(cuDeviceGetCount(&devices));
    CUdevice device;
    CUcontext context;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    std::printf("{\"devices\": %d}\n", devices);
    constexpr CUdeviceptr kRegions[] = {0x2000'0000'0000, 0x6000'0000'0000, 0x1800'0000'0000};
    for (CUdeviceptr region : kRegions) {
        const CUdeviceptr own = region + 256 * kGiB, other = region + 768 * kGiB;
        reserve("a session's range", 256 * kGiB, 2 * kMiB, own, false);
        for (const size_t mib : {2, 32, 64, 1024}) {
            for (const size_t alignment : {size_t{0}, 2 * kMiB}) {
                reserve("of another session, small", mib * kMiB, alignment, other, true);
                reserve("the same, further inside", mib * kMiB, alignment, other + 6 * kGiB + 2 * kMiB, true);
            }
        }
        reserve("of another session, the whole", 256 * kGiB, 2 * kMiB, other, true);
        reserve("a small one behind one's own", 2 * kMiB, 2 * kMiB, own + 256 * kGiB, true);
        reserve("a whole and kept", 256 * kGiB, 2 * kMiB, other, false);
        reserve("a third", 256 * kGiB, 2 * kMiB, region + 1280 * kGiB, false);
    }
    return 0;
}
