// The signals that tell a program to end, held back from its threads so that it ends in order.
#pragma once

#include <chrono>
#include <csignal>

namespace smt::tools::http {

class EndSignals {
public:
    // Before the first thread is started.
    EndSignals();
    // Waits for so long. True: one came.
    bool came_within(std::chrono::nanoseconds time) const;

private:
    sigset_t ends_{};
};

}  // namespace smt::tools::http
