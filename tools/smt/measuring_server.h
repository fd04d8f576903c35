// What `smt profile` measures with: servers of its own in a runtime folder of its own, so that no other
// programs use them, and the programs that run under them.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace smt::tools {

inline constexpr int kFruitlessRuns =
    2;  // in a row, of what is run again and again until all is measured: then no more are made

class MeasuringServer {
public:
    // The folder, which goes when this does; and this process's environment, by which servers are the
    // folder's. Throws Failure.
    MeasuringServer();
    ~MeasuringServer();
    MeasuringServer(const MeasuringServer&) = delete;
    MeasuringServer& operator=(const MeasuringServer&) = delete;

    struct Program {
        std::vector<std::string> command;
        std::string device = {};  // of smt run --device; empty: its choice
        std::string stress = {};  // of smt run --stress; empty: none
        bool shows = false;       // it prints where this process does; else into a file
    };
    // Runs programs at the same time under a server that measures this (SMT_PROFILE; empty: nothing), and
    // ends the server: all that it learnt is in the store then. `tick` is called now and then. What its
    // journal says of measurements goes to stderr, each line once. Throws Failure, with what a program
    // printed, if that ends with another code than 0; the others are ended then.
    void run(const std::vector<Program>& programs, const std::string& profile,
             const std::function<void()>& tick);

    // A file of that name in the folder.
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    // The last that a program of the last run printed.
    std::string printed(size_t program) const;
    // The last that a server of the last run said of pairs (profiles::kSideBySide), without that; empty:
    // nothing.
    const std::string& side_by_side() const { return side_by_side_; }

private:
    std::string output(size_t program) const;
    int start(const Program& program, const std::string& profile, const std::string& output) const;
    void end_server();

    std::string path_;
    std::set<std::string> said_;
    std::string side_by_side_;
};

// What is said while something runs: a bar, and how long it will take.
class Progress {
public:
    explicit Progress(std::string what);
    void show(double done);  // 0 to 1; below 0: unknown
    void end(const std::string& result);

private:
    const std::string what_;
    const std::chrono::steady_clock::time_point begun_;
    const bool terminal_;
};

}  // namespace smt::tools
