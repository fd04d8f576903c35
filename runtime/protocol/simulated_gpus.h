// The simulated GPUs of a machine: how many there are, what tells them apart, and which of them a program
// sees. They are alike; each has a server of its own.
//
//   GPU 0: key "simulated",   UUID f0f1f2f3..., bus id 0000:01:00.0
//   GPU 1: key "simulated-1", UUID f1f1f2f3..., bus id 0000:02:00.0
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string_view>

#include "runtime/protocol/gpu_uuid.h"
#include "runtime/protocol/runtime_folder.h"
#include "runtime/settings/read.h"

namespace smt::protocol {

inline constexpr int kMostSimulatedGpus = 16;

inline int simulated_gpus() { return static_cast<int>(settings::number_of(settings::Id::kSimGpus)); }

inline void name_simulated_key(int gpu, char* key, size_t bytes) {
    if (gpu == 0)
        snprintf(key, bytes, "%s", kSimulatedKey);
    else
        snprintf(key, bytes, "%s-%d", kSimulatedKey, gpu);
}

// The number of the simulated GPU whose server has that key, without a tenant's part; -1: it is none's.
inline int simulated_gpu_of(std::string_view key) {
    for (int gpu = 0; gpu < kMostSimulatedGpus; ++gpu) {
        char each[32];
        name_simulated_key(gpu, each, sizeof each);
        if (key == each) return gpu;
    }
    return -1;
}

inline void write_simulated_uuid(int gpu, char (&uuid)[kUuidBytes]) {
    for (size_t i = 0; i < kUuidBytes; ++i) uuid[i] = static_cast<char>(0xf0 + i);
    uuid[0] = static_cast<char>(0xf0 + gpu);
}

constexpr int simulated_bus(int gpu) { return 1 + gpu; }
inline void write_simulated_bus_id(int gpu, char* id, size_t bytes) {
    snprintf(id, bytes, "0000:%02x:00.0", simulated_bus(gpu));
}

// The GPU that an entry of CUDA_VISIBLE_DEVICES names: by number, or by UUID, of which the beginning will do
// if no other GPU's begins so. -1: none.
inline int named_simulated_gpu(std::string_view entry, int gpus) {
    if (!entry.starts_with("GPU-")) {
        int number = 0;
        if (entry.empty() || entry.size() > 4) return -1;
        for (const char digit : entry) {
            if (digit < '0' || digit > '9') return -1;
            number = 10 * number + (digit - '0');
        }
        return number < gpus ? number : -1;
    }
    int found = -1;
    for (int gpu = 0; gpu < gpus; ++gpu) {
        char uuid[kUuidBytes], key[kUuidKeyBytes], visible[kVisibleBytes];
        write_simulated_uuid(gpu, uuid);
        write_uuid(uuid, key, visible);
        if (!std::string_view(visible).starts_with(entry)) continue;
        if (found >= 0) return -1;
        found = gpu;
    }
    return found;
}

// The GPUs of `gpus` that a program with that CUDA_VISIBLE_DEVICES sees, in its order; null: all. Returns
// their number. As with CUDA's driver the list ends before the first entry that names no GPU, and shows none
// if it names one twice.
inline int visible_simulated_gpus(const char* list, int gpus, int (&visible)[kMostSimulatedGpus]) {
    int count = 0;
    if (!list) {
        for (; count < gpus; ++count) visible[count] = count;
        return count;
    }
    while (true) {
        const size_t bytes = strcspn(list, ",");
        const int gpu = named_simulated_gpu({list, bytes}, gpus);
        if (gpu < 0) return count;
        for (int i = 0; i < count; ++i)
            if (visible[i] == gpu) return 0;
        visible[count++] = gpu;
        if (!list[bytes]) return count;
        list += bytes + 1;
    }
}

}  // namespace smt::protocol
