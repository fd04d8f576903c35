#include "runtime/dispatch/wait_list.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::dispatch {

WaitList::~WaitList() { end(numbers_); }

uint64_t WaitList::add(const Place& place, WaitWords nodes) {
    waits_.push_back({++numbers_, place, std::move(nodes), std::make_shared<std::atomic<uint64_t>>(1)});
    any_.store(true, std::memory_order_release);
    return numbers_;
}

void WaitList::remove(uint64_t number) {
    const auto wait = std::ranges::find_if(waits_, [&](const Wait& each) { return each.number == number; });
    if (wait == waits_.end()) return;
    wait->pending->store(0, std::memory_order_release);
    waits_.erase(wait);
}

void WaitList::end(uint64_t number) {
    while (!waits_.empty() && waits_.front().number <= number) {
        waits_.front().pending->store(0, std::memory_order_release);
        waits_.pop_front();
    }
    any_.store(!waits_.empty(), std::memory_order_release);
}

bool WaitList::holds_up() const {
    const WaitWords& nodes = waits_.front().nodes;
    return nodes.empty() || std::ranges::any_of(nodes, [](const WaitWord& node) { return node.waits(); });
}

WaitWord WaitList::last() const { return waits_.empty() ? WaitWord{} : WaitWord{waits_.back().pending, 0}; }

}  // namespace smt::runtime::dispatch
