#include "tools/index/extraction.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace smt::tools::index {

using rewriter::source::Extract;
using rewriter::source::Input;
using rewriter::source::Wanted;

namespace {

// error NUL text NUL variable NUL ... NUL file NUL file NUL ...: none of them has a NUL, or is empty.
std::string pack(const Extract& extract) {
    std::string bytes = extract.error + '\0' + extract.text + '\0';
    for (const std::string& variable : extract.variables) bytes += variable + '\0';
    bytes += '\0';
    for (const std::string& file : extract.files) bytes += file + '\0';
    return bytes;
}

Extract unpack(const std::string& bytes) {
    std::vector<std::string> parts;
    for (size_t at = 0, end; (end = bytes.find('\0', at)) != bytes.npos; at = end + 1)
        parts.push_back(bytes.substr(at, end - at));
    Extract extract;
    if (parts.size() < 2) return extract.error = "its extraction is cut", extract;
    extract.error = parts[0];
    extract.text = parts[1];
    const auto gap = std::find(parts.begin() + 2, parts.end(), "");
    if (gap == parts.end()) return extract.error = "its extraction is cut", extract;
    extract.variables.assign(parts.begin() + 2, gap);
    extract.files.assign(gap + 1, parts.end());
    return extract;
}

bool write_all(int to, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = write(to, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        bytes.remove_prefix(static_cast<size_t>(written));
    }
    return true;
}

std::string read_all(int from) {
    std::string bytes;
    char part[1 << 16];
    ssize_t got = 0;
    while ((got = read(from, part, sizeof part)) > 0 || (got < 0 && errno == EINTR))
        if (got > 0) bytes.append(part, static_cast<size_t>(got));
    return bytes;
}

Extract failed(const std::string& why) {
    Extract extract;
    extract.error = why;
    return extract;
}

}  // namespace

Extract extract_here(Input input, const Wanted* wanted) {
    std::ifstream file(input.name, std::ios::binary);
    if (!file) return failed(input.name + ": " + std::strerror(errno));
    input.text.assign(std::istreambuf_iterator<char>(file), {});
    return extract(input, wanted);
}

Extract extract_apart(const Input& input, const Wanted* wanted, const std::string& directory,
                      std::chrono::seconds limit) {
    int ends[2];
    if (pipe(ends) != 0) return failed(std::strerror(errno));
    const pid_t child = fork();
    if (child == 0) {
        alarm(static_cast<unsigned>(limit.count()));
        const bool there = directory.empty() || chdir(directory.c_str()) == 0;
        const Extract result =
            there ? extract_here(input, wanted) : failed(directory + ": " + std::strerror(errno));
        _exit(write_all(ends[1], pack(result)) ? 0 : 1);
    }
    close(ends[1]);
    const std::string bytes = child < 0 ? "" : read_all(ends[0]);
    close(ends[0]);
    if (child < 0) return failed(std::string("no process to parse it in: ") + std::strerror(errno));
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return failed(fmt::format("parsing it took longer than {} s", limit.count()));
    if (WIFSIGNALED(status))
        return failed(fmt::format("Clang crashed on it: {}", strsignal(WTERMSIG(status))));
    return unpack(bytes);
}

}  // namespace smt::tools::index
