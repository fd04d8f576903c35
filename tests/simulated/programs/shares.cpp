// Shares device memory with other processes. Reads commands from its standard input, a line each, and answers
// each with a line: what it asks for, or the error's name. Addresses are in hexadecimal digits, and so are
// handles. A process has one event and one descriptor at a time.
//
//   allocate BYTES, pool BYTES, free ADDRESS, reset
//   fill ADDRESS VALUE, read ADDRESS
//   reach ADDRESS BYTES    fills all of it, without a wait
//   share ADDRESS, open HANDLE, close ADDRESS
//   event, share_event, open_event HANDLE, record, query
//   wait                   for the stream
//   slow ADDRESS VALUE     writes the value by a kernel that takes long, and records the event behind it, or,
//                          where there is none, waits for the kernel
//   after ADDRESS          what stands there behind the stream's wait for the event
//   read_after ADDRESS     the same behind the host's wait
//   block ADDRESS          records the event behind a wait for a value at the address
//   behind ADDRESS VALUE   has the stream wait for the event, and writes the value by a kernel behind that
//   unblock ADDRESS        ends that wait, in another stream and behind a kernel
//   create BYTES KIND      KIND: descriptor or plain
//   map HANDLE, unmap ADDRESS, release HANDLE
//   types ADDRESS          as what the memory there may be exported
//   descriptor HANDLE, import, close_descriptor
//   send SOCKET, receive SOCKET   the descriptor, by a socket that the process has inherited
//   child COMMAND...       starts this program again, which inherits the descriptor, for one command
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "tests/preload/program.h"

extern char** environ;

namespace {

constexpr char kImage[] = R"(
.version 8.0
.target sm_90
.address_size 64

// *to = value, after `rounds` turns
.visible .entry slow(.param .u64 to, .param .u32 value, .param .u32 rounds)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %rd;
    ld.param.u32 %r0, [rounds];
again:
    sub.u32 %r0, %r0, 1;
    setp.ne.u32 %p, %r0, 0;
    @%p bra again;
    ld.param.u64 %rd, [to];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd], %r1;
    ret;
}
)";

constexpr unsigned kRounds = 20'000;
constexpr size_t kChunk = 2u << 20;

CUstream stream = nullptr;
CUevent event = nullptr;
CUfunction function = nullptr;
int descriptor = -1;

std::string number(uint64_t value) {
    std::ostringstream text;
    text << std::hex << value;
    return text.str();
}

std::string digits(const void* data, size_t bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < bytes; ++i) {
        const unsigned byte = static_cast<const unsigned char*>(data)[i];
        text += {kDigits[byte / 16], kDigits[byte % 16]};
    }
    return text;
}

template <typename Handle>
Handle handle_of(const std::string& text) {
    Handle handle{};
    REQUIRE(text.size() == 2 * sizeof handle);
    for (size_t i = 0; i < sizeof handle; ++i)
        reinterpret_cast<unsigned char*>(&handle)[i] =
            static_cast<unsigned char>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
    return handle;
}

std::string unless(CUresult status, const std::string& answer = "ok") {
    return status == CUDA_SUCCESS ? answer : preload::name_of(status);
}

CUdeviceptr address(std::istream& in) {
    CUdeviceptr value = 0;
    in >> std::hex >> value >> std::dec;
    return value;
}

uint64_t value(std::istream& in) {
    uint64_t read = 0;
    in >> read;
    return read;
}

std::string text(std::istream& in) {
    std::string read;
    in >> read;
    return read;
}

std::string read_word(CUdeviceptr from) {
    unsigned word = 0;
    const CUresult status = cuMemcpyDtoH(&word, from, sizeof word);
    return unless(status, std::to_string(word));
}

void write_late(CUdeviceptr to, uint64_t number, CUstream on) {
    unsigned written = static_cast<unsigned>(number), rounds = kRounds;
    void* parameters[] = {&to, &written, &rounds};
    CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, on, parameters, nullptr));
}

std::string slow(std::istream& in) {
    const CUdeviceptr to = address(in);
    write_late(to, value(in), stream);
    return unless(event ? cuEventRecord(event, stream) : cuStreamSynchronize(stream));
}

std::string after(std::istream& in) {
    const CUdeviceptr from = address(in);
    unsigned* word = nullptr;
    CHECK(cuMemAllocHost(reinterpret_cast<void**>(&word), sizeof *word));
    CHECK(cuStreamWaitEvent(stream, event, 0));
    CHECK(cuMemcpyDtoHAsync(word, from, sizeof *word, stream));
    CHECK(cuStreamSynchronize(stream));
    const std::string answer = std::to_string(*word);
    CHECK(cuMemFreeHost(word));
    return answer;
}

std::string block(std::istream& in) {
    CHECK(cuStreamWaitValue32(stream, address(in), 1, CU_STREAM_WAIT_VALUE_EQ));
    return unless(cuEventRecord(event, stream));
}

std::string behind(std::istream& in) {
    const CUdeviceptr to = address(in);
    CHECK(cuStreamWaitEvent(stream, event, 0));
    write_late(to, value(in), stream);
    return cuStreamQuery(stream) == CUDA_ERROR_NOT_READY ? "ok" : "it does not wait";
}

std::string unblock(std::istream& in) {
    CUstream other = nullptr;
    const CUdeviceptr word = address(in);
    CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    write_late(word + 8, 1, other);
    CHECK(cuStreamWriteValue32(other, word, 1, 0));
    CHECK(cuStreamSynchronize(other));
    return unless(cuStreamDestroy(other));
}

std::string create(std::istream& in) {
    const size_t bytes = value(in);
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    if (text(in) == "descriptor") wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle = 0;
    const CUresult status = cuMemCreate(&handle, bytes, &wanted, 0);
    return unless(status, number(handle));
}

std::string map(std::istream& in) {
    const CUmemGenericAllocationHandle handle = address(in);
    CUdeviceptr at = 0;
    CHECK(cuMemAddressReserve(&at, kChunk, 0, 0, 0));
    if (const CUresult status = cuMemMap(at, kChunk, 0, handle, 0); status != CUDA_SUCCESS)
        return preload::name_of(status);
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return unless(cuMemSetAccess(at, kChunk, &access, 1), number(at));
}

std::string export_descriptor(std::istream& in) {
    int file = -1;
    const CUresult status =
        cuMemExportToShareableHandle(&file, address(in), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (status == CUDA_SUCCESS) descriptor = file;
    return unless(status);
}

std::string import_descriptor(std::istream&) {
    CUmemGenericAllocationHandle handle = 0;
    const CUresult status =
        cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    return unless(status, number(handle));
}

// One byte goes with it.
struct Packet {
    char byte = 'd';
    iovec part{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    Packet() {
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
    }
};

std::string send_descriptor(std::istream& in) {
    Packet packet;
    cmsghdr* header = CMSG_FIRSTHDR(&packet.message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    return sendmsg(static_cast<int>(value(in)), &packet.message, 0) == 1 ? "ok" : "not sent";
}

std::string receive_descriptor(std::istream& in) {
    Packet packet;
    if (recvmsg(static_cast<int>(value(in)), &packet.message, 0) != 1) return "not received";
    cmsghdr* header = CMSG_FIRSTHDR(&packet.message);
    if (!header || header->cmsg_type != SCM_RIGHTS) return "no descriptor";
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return "ok";
}

std::string child(std::istream& in) {
    std::string command;
    std::getline(in >> std::ws, command);
    std::string inherited = std::to_string(descriptor >= 0 ? dup(descriptor) : -1);
    char program[] = "/proc/self/exe";
    char* const arguments[] = {program, inherited.data(), command.data(), nullptr};
    pid_t started = 0;
    int status = 0;
    if (posix_spawn(&started, program, nullptr, nullptr, arguments, environ) != 0) return "not started";
    waitpid(started, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "over" : "failed";
}

using Command = std::function<std::string(std::istream&)>;

std::string share_memory(std::istream& in) {
    CUipcMemHandle handle{};
    const CUresult status = cuIpcGetMemHandle(&handle, address(in));
    return unless(status, digits(&handle, sizeof handle));
}

std::string open_memory(std::istream& in) {
    CUdeviceptr opened = 0;
    const CUresult status =
        cuIpcOpenMemHandle(&opened, handle_of<CUipcMemHandle>(text(in)), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    return unless(status, number(opened));
}

std::string share_event(std::istream&) {
    CUipcEventHandle handle{};
    const CUresult status = cuIpcGetEventHandle(&handle, event);
    return unless(status, digits(&handle, sizeof handle));
}

std::string open_event(std::istream& in) {
    return unless(cuIpcOpenEventHandle(&event, handle_of<CUipcEventHandle>(text(in))));
}

std::string make_event(std::istream&) {
    return unless(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
}

std::string read_after(std::istream& in) {
    CHECK(cuEventSynchronize(event));
    return read_word(address(in));
}

std::string allocate(std::istream& in) {
    CUdeviceptr made = 0;
    const CUresult status = cuMemAlloc(&made, value(in));
    return unless(status, number(made));
}

std::string allocate_from_pool(std::istream& in) {
    CUdeviceptr made = 0;
    CHECK(cuMemAllocAsync(&made, value(in), stream));
    CHECK(cuStreamSynchronize(stream));
    return number(made);
}

std::string fill(std::istream& in) {
    const CUdeviceptr to = address(in);
    CHECK(cuMemsetD32Async(to, static_cast<unsigned>(value(in)), 1, stream));
    return unless(cuStreamSynchronize(stream));
}

std::string reach(std::istream& in) {
    const CUdeviceptr to = address(in);
    return unless(cuMemsetD8Async(to, 1, value(in), stream));
}

std::string types(std::istream& in) {
    unsigned long long allowed = 0;
    const CUresult status =
        cuPointerGetAttribute(&allowed, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address(in));
    return unless(status, std::to_string(allowed));
}

std::string unmap(std::istream& in) {
    const CUdeviceptr at = address(in);
    CHECK(cuMemUnmap(at, kChunk));
    return unless(cuMemAddressFree(at, kChunk));
}

const std::map<std::string, Command> kCommands = {
    {"allocate", allocate},
    {"pool", allocate_from_pool},
    {"fill", fill},
    {"reach", reach},
    {"read", [](std::istream& in) { return read_word(address(in)); }},
    {"free", [](std::istream& in) { return unless(cuMemFree(address(in))); }},
    {"share", share_memory},
    {"open", open_memory},
    {"close", [](std::istream& in) { return unless(cuIpcCloseMemHandle(address(in))); }},
    {"event", make_event},
    {"share_event", share_event},
    {"open_event", open_event},
    {"record", [](std::istream&) { return unless(cuEventRecord(event, stream)); }},
    {"query", [](std::istream&) { return unless(cuEventQuery(event)); }},
    {"wait", [](std::istream&) { return unless(cuStreamSynchronize(stream)); }},
    {"block", block},
    {"behind", behind},
    {"unblock", unblock},
    {"slow", slow},
    {"after", after},
    {"read_after", read_after},
    {"reset", [](std::istream&) { return unless(cuDevicePrimaryCtxReset(0)); }},
    {"create", create},
    {"map", map},
    {"unmap", unmap},
    {"release", [](std::istream& in) { return unless(cuMemRelease(address(in))); }},
    {"descriptor", export_descriptor},
    {"import", import_descriptor},
    {"close_descriptor", [](std::istream&) { return close(descriptor) == 0 ? "ok" : "not closed"; }},
    {"send", send_descriptor},
    {"receive", receive_descriptor},
    {"types", types},
    {"child", child},
};

void obey(const std::string& line) {
    std::istringstream in(line);
    const auto command = kCommands.find(text(in));
    REQUIRE(command != kCommands.end());
    std::cout << command->second(in) << std::endl;
}

}  // namespace

int main(int count, char** arguments) {
    preload::start();
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&function, module, "slow"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (count == 3) {
        descriptor = std::stoi(arguments[1]);
        obey(arguments[2]);
        return 0;
    }
    for (std::string line; std::getline(std::cin, line);) obey(line);
}
