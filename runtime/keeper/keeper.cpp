#include "runtime/keeper/keeper.h"

#include <poll.h>
#include <unistd.h>

#include "runtime/keeper/channel.h"

namespace smt::runtime::keeper {

namespace {

// An answer that does not fit the socket's buffer: the client does not read, and counts as gone.
bool reply(int client, const Answer& answer, const std::vector<int>& files) {
    return send_packet(client, &answer, sizeof(Reply) + answer.reply.count * sizeof(Chunk), files, false);
}

bool reply(int client, int status) {
    Answer answer;
    answer.reply.status = status;
    return reply(client, answer, {});
}

bool proper(const Request& request) {
    return request.bytes != 0 && request.bytes % kGranularity == 0 && request.bytes <= kMostBytes;
}

}  // namespace

void Keeper::serve(int socket) {
    clients_.push_back(socket);
    while (!clients_.empty()) {
        std::vector<pollfd> watched;
        for (int client : clients_) watched.push_back({client, POLLIN, 0});
        if (poll(watched.data(), watched.size(), -1) < 0) continue;  // a signal
        for (const pollfd& each : watched) {
            if (each.revents == 0 || answer(each.fd)) continue;
            close(each.fd);
            std::erase(clients_, each.fd);
        }
    }
}

bool Keeper::answer(int client) {
    Request request;
    std::vector<int> files;
    const size_t got = receive_packet(client, &request, sizeof request, &files);
    bool good = got == sizeof request && request.magic == kMagic && request.version == kVersion;
    if (good && request.kind == Kind::kAddClient) {
        good = add_client(client, files);
    } else if (good && request.kind == Kind::kCreate) {
        good = create(client, request);
    } else if (good && request.kind == Kind::kList) {
        good = list(client, request.id);
    } else if (good && request.kind == Kind::kRelease) {
        const bool known = chunks_.erase(request.id) != 0;
        if (known) source_.release(request.id);
        good = reply(client, known ? 0 : kInvalid);
    } else {
        good = false;
    }
    close_all(files);
    return good;
}

bool Keeper::create(int client, const Request& request) {
    if (!proper(request)) return reply(client, kInvalid);
    const uint64_t id = next_++;
    Answer answer;
    answer.reply.status = source_.create(id, request.bytes);
    if (answer.reply.status != 0) return reply(client, answer, {});
    int file = -1;
    answer.reply.status = source_.descriptor(id, &file);
    if (answer.reply.status != 0) {
        source_.release(id);
        return reply(client, answer, {});
    }
    answer.reply.count = 1;
    answer.chunks[0] = chunks_[id] = {id, request.bytes};
    const bool good = reply(client, answer, {file});
    close(file);
    return good;
}

bool Keeper::list(int client, uint64_t after) {
    Answer answer;
    std::vector<int> files;
    for (auto each = chunks_.upper_bound(after); each != chunks_.end() && files.size() < kMostListed;
         ++each) {
        int file = -1;
        answer.reply.status = source_.descriptor(each->first, &file);
        if (answer.reply.status != 0) break;
        answer.chunks[files.size()] = each->second;
        files.push_back(file);
    }
    answer.reply.count = static_cast<uint32_t>(files.size());
    const bool good = reply(client, answer, files);
    close_all(files);
    return good;
}

bool Keeper::add_client(int client, const std::vector<int>& files) {
    if (files.size() != 1 || clients_.size() >= kMostClients) return reply(client, kInvalid);
    const int added = dup(files[0]);  // the caller closes what came with the packet
    if (added < 0) return reply(client, kNoMemory);
    clients_.push_back(added);
    return reply(client, 0);
}

}  // namespace smt::runtime::keeper
