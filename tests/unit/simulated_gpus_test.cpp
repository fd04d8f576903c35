// What tells simulated GPUs apart, and which of them CUDA_VISIBLE_DEVICES shows.
#include "runtime/protocol/simulated_gpus.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "runtime/protocol/server_key.h"

namespace {

namespace protocol = smt::protocol;
using Gpus = std::vector<int>;

std::string key_of(int gpu) {
    char key[protocol::kMostGpuKey];
    protocol::name_simulated_key(gpu, key, sizeof key);
    return key;
}

std::string uuid_of(int gpu) {
    char uuid[protocol::kUuidBytes], key[protocol::kUuidKeyBytes], visible[protocol::kVisibleBytes];
    protocol::write_simulated_uuid(gpu, uuid);
    protocol::write_uuid(uuid, key, visible);
    return visible;
}

Gpus shown(const char* list, int gpus) {
    int visible[protocol::kMostSimulatedGpus];
    const int count = protocol::visible_simulated_gpus(list, gpus, visible);
    return Gpus(visible, visible + count);
}

TEST_CASE("simulated GPUs: each has a key, a UUID and a bus of its own", "[simulated_gpus]") {
    CHECK(key_of(0) == "simulated");
    CHECK(key_of(1) == "simulated-1");
    CHECK(uuid_of(0) == "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
    std::set<std::string> keys, uuids, buses;
    for (int gpu = 0; gpu < protocol::kMostSimulatedGpus; ++gpu) {
        char bus[16];
        protocol::write_simulated_bus_id(gpu, bus, sizeof bus);
        keys.insert(key_of(gpu));
        uuids.insert(uuid_of(gpu));
        buses.insert(bus);
        CHECK(protocol::is_key(key_of(gpu) + "@alice"));
        CHECK(protocol::simulated_gpu_of(key_of(gpu)) == gpu);
    }
    for (const std::set<std::string>& each : {keys, uuids, buses})
        CHECK(each.size() == protocol::kMostSimulatedGpus);
    for (const char* other :
         {"", "device", "simulated-0", "simulated-16", "simulated-01", "simulated-", "f0f1"})
        CHECK(protocol::simulated_gpu_of(other) == -1);
}

TEST_CASE("simulated GPUs: CUDA_VISIBLE_DEVICES by number", "[simulated_gpus]") {
    CHECK(shown(nullptr, 1) == Gpus{0});
    CHECK(shown(nullptr, 3) == Gpus{0, 1, 2});
    CHECK(shown("1", 3) == Gpus{1});
    CHECK(shown("2,0", 3) == Gpus{2, 0});
    CHECK(shown("", 3) == Gpus{});
    CHECK(shown("-1", 3) == Gpus{});
    CHECK(shown("0,3,1", 3) == Gpus{0});  // there is no GPU 3
    CHECK(shown("0,one,1", 3) == Gpus{0});
    CHECK(shown("0,,1", 3) == Gpus{0});
    CHECK(shown("99999999999999999999", 3) == Gpus{});
    CHECK(shown("0,1,0", 3) == Gpus{});
}

TEST_CASE("simulated GPUs: CUDA_VISIBLE_DEVICES by UUID", "[simulated_gpus]") {
    CHECK(shown(uuid_of(2).c_str(), 3) == Gpus{2});
    CHECK(shown((uuid_of(2) + "," + uuid_of(1)).c_str(), 3) == Gpus{2, 1});
    CHECK(shown("GPU-f1,0", 3) == Gpus{1, 0});
    CHECK(shown("GPU-f", 3) == Gpus{});  // which one?
    CHECK(shown("GPU-f", 1) == Gpus{0});
    CHECK(shown("GPU-f2", 2) == Gpus{});
    CHECK(shown((uuid_of(1) + "0").c_str(), 3) == Gpus{});
    CHECK(shown("f1f1f2f3", 3) == Gpus{});
}

}  // namespace
