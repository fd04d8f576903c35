#include "tools/http/signals.h"

#include <ctime>

namespace smt::tools::http {

EndSignals::EndSignals() {
    sigemptyset(&ends_);
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends_, each);
    pthread_sigmask(SIG_BLOCK, &ends_, nullptr);
}

bool EndSignals::came_within(std::chrono::nanoseconds time) const {
    const timespec wait{.tv_sec = static_cast<time_t>(time.count() / 1'000'000'000),
                        .tv_nsec = static_cast<long>(time.count() % 1'000'000'000)};
    return sigtimedwait(&ends_, nullptr, &wait) > 0;
}

}  // namespace smt::tools::http
