#include "runtime/server/callbacks.h"

#include "runtime/server/poll_interval.h"
#include "runtime/server/streams.h"
#include "runtime/thread/futex.h"

namespace smt::runtime::server {

// The user data of a driver's host function. A stream's ticket is used once, a graph's any number of times,
// each time with a new value.
struct Callbacks::Ticket {
    Callbacks* owner = nullptr;
    protocol::CallbackSlot slot{};
    // Of a graph's: calls that wait for the client. Lists of streams' waits may outlive this object.
    std::shared_ptr<std::atomic<uint64_t>> calls = nullptr;
};

Callbacks::Callbacks(const DriverApi& driver, Arena& arena) : driver_(driver), arena_(arena) {}
Callbacks::~Callbacks() = default;

CUresult Callbacks::enqueue(Stream& stream, uint64_t function, uint64_t user_data, uint64_t client_stream,
                            protocol::CallbackKind kind) {
    if (stream.callback.index == 0) stream.callback = arena_.take_word();
    if (stream.callback.index == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t value = stream.callback.value + 1;

    auto made = std::make_unique<Ticket>();
    Ticket* ticket = made.get();
    ticket->owner = this;
    ticket->slot = {
        function, user_data, client_stream, static_cast<uint32_t>(kind), CUDA_SUCCESS, stream.callback.index,
        value};
    {
        std::lock_guard lock(mutex_);
        tickets_[ticket] = std::move(made);
    }
    CUresult status = driver_.cuLaunchHostFunc(stream.handle, push_and_return, ticket);
    if (status != CUDA_SUCCESS) {
        std::lock_guard lock(mutex_);
        tickets_.erase(ticket);
        return status;
    }
    stream.callback.value = value;
    stream.awaited_by_none.store(value);
    return CUDA_SUCCESS;
}

CUresult Callbacks::capture(CUstream stream, uint64_t function, uint64_t user_data, uint64_t client_stream,
                            protocol::CallbackKind kind) {
    Ticket* ticket = node_ticket(function, user_data, client_stream, kind);
    if (!ticket) return CUDA_ERROR_OUT_OF_MEMORY;
    return driver_.cuLaunchHostFunc(stream, push_and_wait, ticket);
}

CUDA_HOST_NODE_PARAMS Callbacks::node(uint64_t function, uint64_t user_data) {
    CUDA_HOST_NODE_PARAMS parameters{};
    Ticket* ticket = node_ticket(function, user_data, 0, protocol::CallbackKind::kHostFunction);
    if (ticket) parameters = {push_and_wait, ticket};
    return parameters;
}

bool Callbacks::application_function(const CUDA_HOST_NODE_PARAMS& node, uint64_t* function,
                                     uint64_t* user_data) const {
    if (node.fn != push_and_wait) return false;
    std::lock_guard lock(mutex_);
    auto found = tickets_.find(static_cast<Ticket*>(node.userData));
    if (found == tickets_.end()) return false;
    *function = found->second->slot.function;
    *user_data = found->second->slot.user_data;
    return true;
}

dispatch::WaitWord Callbacks::calls(const CUDA_HOST_NODE_PARAMS& node) const {
    if (node.fn != push_and_wait) return {};
    std::lock_guard lock(mutex_);
    auto found = tickets_.find(static_cast<Ticket*>(node.userData));
    return found == tickets_.end() ? dispatch::WaitWord{} : dispatch::WaitWord{found->second->calls, 0};
}

// One ticket for each distinct function. All have one word, since the client runs what is pushed in its
// order.
Callbacks::Ticket* Callbacks::node_ticket(uint64_t function, uint64_t user_data, uint64_t client_stream,
                                          protocol::CallbackKind kind) {
    Key key{function, user_data, client_stream, static_cast<uint32_t>(kind)};
    std::lock_guard lock(mutex_);
    if (auto found = node_tickets_.find(key); found != node_tickets_.end()) return found->second;
    if (node_word_.index == 0) node_word_ = arena_.take_word();
    if (node_word_.index == 0) return nullptr;
    auto made = std::make_unique<Ticket>();
    Ticket* ticket = made.get();
    ticket->owner = this;
    ticket->calls = std::make_shared<std::atomic<uint64_t>>(0);
    ticket->slot = {function,     user_data,        client_stream,   static_cast<uint32_t>(kind),
                    CUDA_SUCCESS, node_word_.index, node_word_.value};
    tickets_[ticket] = std::move(made);
    node_tickets_[key] = ticket;
    return ticket;
}

// Runs on the driver's callback thread: no driver call and no blocking here.
void Callbacks::push_and_return(void* pointer) {
    Ticket* ticket = static_cast<Ticket*>(pointer);
    Callbacks& self = *ticket->owner;
    std::lock_guard lock(self.mutex_);
    self.push_locked(ticket->slot);
    self.tickets_.erase(ticket);
}

void Callbacks::push_and_wait(void* pointer) {
    Ticket* ticket = static_cast<Ticket*>(pointer);
    Callbacks& self = *ticket->owner;
    uint64_t value = 0;
    {
        std::lock_guard lock(self.mutex_);
        value = ticket->slot.done_value = ++self.node_word_.value;
        self.push_locked(ticket->slot);
    }
    std::atomic<uint64_t>& word = self.arena_.word(static_cast<uint32_t>(ticket->slot.done_word));
    ticket->calls->fetch_add(1, std::memory_order_release);
    PollInterval interval;
    while (word.load(std::memory_order_acquire) < value && !self.released_.load()) {
        interval.sleep();
        if (interval.is_longest()) self.drain();
    }
    ticket->calls->fetch_sub(1, std::memory_order_release);
}

void Callbacks::push_locked(const protocol::CallbackSlot& slot) {
    if (released_.load()) return;
    waiting_.push_back(slot);
    drain_locked();
}

bool Callbacks::waits() const {
    std::lock_guard lock(mutex_);
    return !waiting_.empty();
}

uint32_t Callbacks::tail() const {
    std::lock_guard lock(mutex_);
    return tail_;
}

void Callbacks::go_on_at(uint32_t tail) {
    std::lock_guard lock(mutex_);
    tail_ = tail;
}

void Callbacks::drain() {
    std::lock_guard lock(mutex_);
    if (!waiting_.empty()) drain_locked();
}

void Callbacks::drain_locked() {
    protocol::SessionHeader& header = arena_.header();
    uint32_t head = header.callback_head.load(std::memory_order_acquire);
    bool pushed = false;
    while (!waiting_.empty() && tail_ - head < protocol::kCallbackSlots) {
        header.callbacks[tail_++ % protocol::kCallbackSlots] = waiting_.front();
        waiting_.pop_front();
        pushed = true;
    }
    if (!pushed) return;
    header.callback_tail.store(tail_, std::memory_order_release);
    futex_wake_all(header.callback_tail);
}

void Callbacks::release() {
    released_.store(true);
    {
        std::lock_guard lock(mutex_);
        waiting_.clear();
    }
    arena_.release_words();
}

}  // namespace smt::runtime::server
