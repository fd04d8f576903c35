// smt top: smt status, again and again, until q or Ctrl-C.
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/smt/command.h"
#include "tools/smt/status_view.h"

namespace smt::tools {
namespace {

constexpr double kInterval = 1, kShortest = 0.1, kLongest = 3600;  // seconds
constexpr const char* kClear = "\033[H\033[2J";

double parse_interval(const std::string& text) {
    char* end = nullptr;
    const double seconds = std::strtod(text.c_str(), &end);
    if (text.empty() || *end || !std::isfinite(seconds) || seconds < kShortest || seconds > kLongest)
        throw Misuse(fmt::format("--interval wants seconds, {} to {}, not '{}'", kShortest, kLongest, text));
    return seconds;
}

// Keys come one by one, unseen, and signals that end the program can be waited for; until it goes.
class Keyboard {
public:
    Keyboard() {
        sigset_t ends;
        ::sigemptyset(&ends);
        for (int each : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ends, each);
        ::sigprocmask(SIG_BLOCK, &ends, &before_);
        signals_ = ::signalfd(-1, &ends, SFD_CLOEXEC);
        if (signals_ < 0) throw Failure(std::string("cannot wait for signals: ") + std::strerror(errno));
        is_terminal_ = ::tcgetattr(STDIN_FILENO, &settings_) == 0;
        if (!is_terminal_) return;
        termios one_by_one = settings_;
        one_by_one.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        ::tcsetattr(STDIN_FILENO, TCSANOW, &one_by_one);
    }
    ~Keyboard() {
        if (is_terminal_) ::tcsetattr(STDIN_FILENO, TCSANOW, &settings_);
        ::close(signals_);
        ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    }
    Keyboard(const Keyboard&) = delete;
    Keyboard& operator=(const Keyboard&) = delete;

    // Waits for so long. True: q was pressed or a signal came.
    bool leaves_within(double seconds) {
        pollfd files[] = {{signals_, POLLIN, 0}, {open_ ? STDIN_FILENO : -1, POLLIN, 0}};
        if (::poll(files, 2, static_cast<int>(seconds * 1000)) <= 0) return false;
        signalfd_siginfo taken;  // or it would end the program when signals are let through again
        if (files[0].revents) return ::read(signals_, &taken, sizeof(taken)) > 0;
        char key = 0;
        if (files[1].revents && ::read(STDIN_FILENO, &key, 1) <= 0)
            open_ = false;  // no more input: it goes on
        return key == 'q' || key == 'Q';
    }

private:
    sigset_t before_{};
    termios settings_{};
    bool is_terminal_ = false;
    bool open_ = true;
    int signals_ = -1;
};

int run_top(const Arguments& arguments) {
    const Options options = parse_options(arguments, {"--once"}, {"--interval"});
    const std::string* text = options.value("--interval");
    const double interval = text ? parse_interval(*text) : kInterval;
    StatusView view;
    if (options.has("--once")) {
        std::fputs(view.text().c_str(), stdout);
        return 0;
    }
    const bool clears = ::isatty(STDOUT_FILENO);
    Keyboard keyboard;
    do {
        fmt::print("{}{}{}", clears ? kClear : "", view.text(), clears ? "\nq: leave\n" : "\n");
        if (std::fflush(stdout) != 0) return 0;  // the reader has closed the pipe
    } while (!keyboard.leaves_within(interval));
    return 0;
}

}  // namespace

const Command top_command = {"top", "smt top [--interval SECONDS] [--once]",
                             "smt status, again and again; q leaves", run_top};

}  // namespace smt::tools
