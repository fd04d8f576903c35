#include "interpose/transport/device_facts.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>

#include "interpose/process/clock.h"
#include "interpose/process/visible_gpus.h"
#include "interpose/transport/connect.h"
#include "interpose/transport/connection.h"
#include "interpose/transport/server_start.h"
#include "runtime/protocol/packet.h"
#include "runtime/protocol/server_key.h"
#include "runtime/protocol/simulated_gpus.h"

namespace smt::interpose {

namespace {

struct Facts {
    std::atomic<bool> known;
    protocol::DeviceReply reply;  // written once, before `known`
};

constinit pthread_mutex_t facts_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Facts all_facts[protocol::kMostSimulatedGpus] = {};  // by the GPU's number on the machine

bool ask(int gpu, protocol::DeviceReply& reply, SessionFailure& failure) {
    char key[protocol::kKeyBytes];
    protocol::name_simulated_key(gpu, key, sizeof key);
    const uint64_t deadline = now_nanoseconds() + uint64_t{kStartSeconds} * 1'000'000'000;
    bool is_system = false;
    const int socket_fd = reach_server(key, nullptr, deadline, &is_system, failure);
    if (socket_fd < 0) return false;
    const timeval limit{kStartSeconds, 0};
    setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    protocol::StatusRequest request;
    request.kind = protocol::ControlKind::kDevice;
    int descriptor = -1;
    const bool good = protocol::send_packet(socket_fd, &request, sizeof request) &&
                      protocol::receive_packet(socket_fd, &reply, sizeof reply, &descriptor) ==
                          static_cast<ssize_t>(sizeof reply) &&
                      reply.kind == protocol::ControlKind::kDeviceReply && reply.ok;
    if (descriptor >= 0) close(descriptor);
    close(socket_fd);
    if (!good) explain(failure, "the server of %s does not say what its device is", key);
    return good;
}

}  // namespace

const protocol::DeviceReply* device_facts(CUdevice device, CUresult& status) {
    const int gpu = simulated_gpu(device);
    if (gpu < 0) return status = CUDA_ERROR_INVALID_DEVICE, nullptr;
    Facts& facts = all_facts[gpu];
    if (facts.known.load(std::memory_order_acquire)) return &facts.reply;
    pthread_mutex_lock(&facts_lock);
    SessionFailure failure{};
    const bool good = facts.known.load(std::memory_order_relaxed) || ask(gpu, facts.reply, failure);
    if (good) facts.known.store(true, std::memory_order_release);
    pthread_mutex_unlock(&facts_lock);
    if (good) return &facts.reply;
    say_no_server(failure.text);
    return status = CUDA_ERROR_SYSTEM_NOT_READY, nullptr;
}

}  // namespace smt::interpose
