#include "runtime/server/control_message.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/jit/messages.h"
#include "runtime/jit/options.h"
#include "runtime/jit/service.h"
#include "runtime/protocol/packet.h"
#include "runtime/server/memory_file.h"

namespace smt::runtime::server {

namespace {

// Makes a private copy, because the client may change or truncate the file at any time. Empty: it cannot be
// read.
std::string contents(int file, uint64_t bytes) {
    struct stat facts;
    if (!is_memory_file(file) || fstat(file, &facts) != 0 || facts.st_size < static_cast<off_t>(bytes))
        return "";
    std::string copy(bytes, '\0');
    for (size_t at = 0; at < copy.size();) {
        ssize_t got = pread(file, copy.data() + at, copy.size() - at, static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return "";
        at += static_cast<size_t>(got);
    }
    return copy;
}

}  // namespace

void ControlMessage::close_file() {
    if (file_ >= 0) close(file_);
    file_ = -1;
}

bool ControlMessage::receive(int socket) {
    close_file();
    const ssize_t got = protocol::receive_packet(socket, packet_, sizeof packet_, &file_);
    if (got <= 0) return false;
    bytes_ = static_cast<size_t>(got);
    return true;
}

std::string submit_captured(jit::Service& compiler, uint32_t tenant, int file, uint64_t bytes) {
    if (bytes > protocol::kMostCapturedBytes) return fmt::format("{} bytes are too many", bytes);
    const std::string copy = contents(file, bytes);
    protocol::Reader reader(copy.data(), copy.size());
    std::string directory = jit::read_string(reader);
    jit::Source source = jit::read_source(reader);
    uint64_t image_bytes = 0;
    const char* image = reader.array<char>(image_bytes);
    if (!reader.good() || reader.left() != 0 || !image) return "its message cannot be read";
    jit::Options options = jit::prepare_options(source.options);
    if (!options.refusal.empty()) return fmt::format("{}: {}", source.name, options.refusal);
    source.options = std::move(options.kept);
    compiler.submit(tenant, std::move(source), std::move(directory), std::string(image, image_bytes));
    return "";
}

}  // namespace smt::runtime::server
