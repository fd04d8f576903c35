// Which lines of the log are shown: a program that fails in a loop must not fill the log, nor push what others did out of the journal.
//
// Lines of one session that differ in numbers alone are of one shape. In a window of kWindow a session shows kMostOfShape lines of one
// shape and kMostOfSession lines in all; the server's own lines (session 0) are counted by shape alone, and more of them are shown. What
// is left out is counted, and said when the window is over.
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
    static constexpr uint64_t kWindow = 10'000'000'000;   // ns
    static constexpr uint32_t kMostOfShape = 20;
    static constexpr uint32_t kMostOfSession = 200;       // and of one shape of the server's own
    static constexpr size_t kMostKinds = 4096;            // that are told apart at a time

    bool shown(uint32_t session, std::string_view line, uint64_t now_ns);

    struct Left {
        uint32_t session;
        uint64_t lines;
        std::string last;   // of them
    };
    // What was left out in windows that are over.
    std::vector<Left> over(uint64_t now_ns);

private:
    struct Window {
        uint64_t begin = 0;
        uint64_t shown = 0;
        uint64_t left = 0;
        std::string last;
    };
    std::map<std::pair<uint32_t, std::string>, Window> windows_;   // by session and shape; the shape "" is all of the session
};

}  // namespace smt::runtime::server
