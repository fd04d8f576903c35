// Profiles in one SQLite file, which programs share and people can read; README.md has its tables.
//
// Every call is a transaction of its own. Several processes may use a file at the same time; a writer waits
// for others, up to two seconds. A process that is killed loses what it had not finished recording and harms
// nothing else; a machine that loses its power may lose the last records besides.
//
// A file of an older version is brought up to date. A file of a newer one, or of another program, is left
// alone, and every call says so. A file that is damaged is set aside as FILE.damaged-1 (or -2 ...) and a new
// one is begun; `say` gets a line. Should the file be taken away while it is in use, the next call begins a
// new one. FILE.lock is held while a file is opened; it stays.
//
// Nothing here throws; what goes wrong is a Problem that names the file. Any thread; calls take turns. `say`
// is called during a call and must not call back. Not across fork(): the child makes a store of its own.
//
// To find a profile takes some 60 us and to record one 150: not for each launch. To open a file of a thousand
// profiles takes 1 to 2 ms, since all of it is checked (profile_tests '[cost]' prints these).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "profiler/store/profile.h"

namespace smt::profiler {

struct Problem {
    std::string text;
};

template <class Value>
using Result = std::variant<Value, Problem>;

// Which profiles; what is empty does not matter.
struct Which {
    std::string kernel{};
    std::string image{};
    std::string device{};
};

class Store {
public:
    using Say = std::function<void(const std::string& line)>;

    // Nothing is opened before it is needed. Folders on the way to the file are made.
    explicit Store(std::string path, Say say = {});
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    [[nodiscard]] Result<std::optional<Profile>> find(const Key& key);
    // Merges it with what is there: what was measured is added, the resources and each coefficient replace
    // those before. A Problem also for texts with a NUL, for coefficients that are not finite, and for a
    // kernel beside it that is of another device; nothing is recorded then.
    [[nodiscard]] std::optional<Problem> record(const Profile& news);
    // Ordered by key.
    [[nodiscard]] Result<std::vector<Profile>> list(const Which& which = {});
    // Another number than before when another connection has written to the file since.
    [[nodiscard]] Result<int64_t> version();
    // How many were there. What others did beside them stays with the others; a reader of pairs needs both
    // sides.
    [[nodiscard]] Result<int64_t> forget(const Which& which);

    // JSON: an array of objects, one for each profile. CSV (RFC 4180): the overview, so one line for each
    // placement, without counters and coefficients; its first line names the columns.
    [[nodiscard]] Result<std::string> export_json(const Which& which = {});
    [[nodiscard]] Result<std::string> export_csv(const Which& which = {});

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace smt::profiler
