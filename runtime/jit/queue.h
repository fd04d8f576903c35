// Which compile is next. Each tenant has a queue of its own and they take turns, so that what one tenant asks
// for delays another by one compile for each of its turns and no more. First comes what a load waits for, of
// all tenants in turn, then the rest. One tenant never has all workers, if there are two or more: a compile
// that does not end leaves one to the others.
//
// What two tenants ask for is one job, in both queues, and runs at the first of their turns. Both are charged
// for it. A tenant may have `most_jobs` of `most_bytes` waiting, and all together `most_bytes_of_all`.
//
// No threads, no locks: its owner has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace smt::runtime::jit {

using TenantId = uint32_t;
inline constexpr TenantId kNoTenant = 0;  // a command, and what tenants that have left were to have

// What waits in a queue. The queue's own while it does.
struct Queued {
    uint64_t bytes = 0;             // to be set before
    std::vector<TenantId> tenants;  // in whose queues it is
    TenantId running_for = kNoTenant;
};
using QueuedPointer = std::shared_ptr<Queued>;

class Queue {
public:
    struct Limits {
        size_t most_jobs = 1024;
        uint64_t most_bytes = 64ull << 20;
        uint64_t most_bytes_of_all = 512ull << 20;
    };
    Queue(size_t workers, const Limits& limits)
        : most_running_(workers > 1 ? workers - 1 : 1), limits_(limits) {}

    // False: there are too many. A job that waits already joins the tenant's queue, or is in it.
    bool add(TenantId tenant, const QueuedPointer& job);
    // A load of the tenant waits for it. Nothing, if it runs or is done.
    void hurry(TenantId tenant, const QueuedPointer& job);
    // It runs from now on, until done(). Null: nothing may run now.
    QueuedPointer next();
    void done(const Queued& job);
    void drop(const QueuedPointer& job);  // it waits no longer
    // What it alone asked for passes to kNoTenant, for the next run of its program. Returned is what has no
    // room there.
    std::vector<QueuedPointer> leave(TenantId tenant);

    size_t size() const { return size_; }  // jobs that wait

private:
    struct Tenant {
        std::deque<QueuedPointer> urgent, later;
        uint64_t bytes = 0;  // of both
        size_t running = 0;
    };
    using Tenants = std::map<TenantId, Tenant>;

    bool has_room(TenantId tenant, uint64_t bytes) const;
    void put(TenantId tenant, const QueuedPointer& job, bool urgent);
    bool take_out(Tenant& tenant, const QueuedPointer& job);  // whether it was there
    void forget_if_empty(TenantId tenant);
    QueuedPointer take(TenantId tenant);

    const size_t most_running_;  // of one tenant
    const Limits limits_;
    Tenants tenants_;
    size_t size_ = 0;
    uint64_t bytes_ = 0;         // of what waits, each once
    TenantId last_ = kNoTenant;  // had the last turn
};

}  // namespace smt::runtime::jit
