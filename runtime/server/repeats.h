// Rate limit of log lines: a program that fails in a loop must not fill the log, nor push other sessions'
// entries out of the journal.
//
// Lines of one session that differ in numbers only have one shape. In a window of kWindow a session may write
// kMostOfShape lines of one shape and kMostOfSession lines in all. The server's own lines (session 0) are
// limited by shape only, at kMostOfSession. Suppressed lines are counted and reported when the window ends.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace smt::runtime::server {

class Repeats {
public:
    static constexpr uint64_t kWindow = 10'000'000'000;  // ns
    static constexpr uint32_t kMostOfShape = 20;
    static constexpr uint32_t kMostOfSession = 200;  // also: of one shape in session 0
    static constexpr size_t kMostKinds = 4096;       // windows tracked at a time

    bool shown(uint32_t session, std::string_view line, uint64_t now_ns);

    struct Left {
        uint32_t session;
        uint64_t lines;
        std::string last;  // the last suppressed line
    };
    // The suppressed lines of windows that have ended.
    std::vector<Left> over(uint64_t now_ns);

private:
    struct Window {
        uint64_t begin = 0;
        uint64_t shown = 0;
        uint64_t left = 0;
        std::string last;
    };
    // By session and shape; shape "": all lines of the session.
    std::map<std::pair<uint32_t, std::string>, Window> windows_;
};

}  // namespace smt::runtime::server
