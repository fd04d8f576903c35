#include "runtime/server/generations.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/journal/journal.h"

namespace smt::runtime::server {

namespace {

std::string numbered(const std::string& path, int generation) {
    return generation == 0 ? path : fmt::format("{}.{}", path, generation);
}

bool exists(const std::string& path) {
    struct stat found;
    return lstat(path.c_str(), &found) == 0;
}

// A server without a readable journal counts as one that left in order.
bool left_in_order(const Files& files, int generation) {
    const journal::Reader journal(numbered(files.journal, generation));
    return !journal.error().empty() || journal.ending() == journal::Ending::kLeft;
}

void move(const Files& files, int from, int to) {
    for (const std::string& path : {files.log, files.journal}) {
        unlink(numbered(path, to).c_str());
        if (exists(numbered(path, from)))
            std::rename(numbered(path, from).c_str(), numbered(path, to).c_str());
    }
}

// The number to be replaced: the first free one, else the oldest that left in order, else the oldest.
int victim(const Files& files) {
    for (int i = 1; i <= kGenerations; ++i) {
        if (!exists(numbered(files.log, i)) && !exists(numbered(files.journal, i))) return i;
    }
    for (int i = kGenerations; i > 0; --i) {
        if (left_in_order(files, i)) return i;
    }
    return kGenerations;
}

}  // namespace

std::string keep_generation(const Files& files) {
    struct stat log;
    const bool said = lstat(files.log.c_str(), &log) == 0 && log.st_size > 0;  // made by the starter
    if (!said && !exists(files.journal)) return "";
    journal::Ending ending = journal::Ending::kLeft;
    if (const journal::Reader last(files.journal); last.error().empty()) ending = last.ending();
    for (int i = victim(files); i > 0; --i) move(files, i - 1, i);
    journal::release_unused(numbered(files.journal, 1));
    if (ending != journal::Ending::kNone) return "";
    return fmt::format(
        "the server before this one ended without leaving: it crashed or was killed. `smt log --last-crash` "
        "shows its journal {}; its log is {}",
        numbered(files.journal, 1), numbered(files.log, 1));
}

}  // namespace smt::runtime::server
