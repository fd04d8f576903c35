#include "runtime/jit/queue.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::jit {

bool Queue::has_room(TenantId tenant, uint64_t bytes) const {
    auto found = tenants_.find(tenant);
    if (found == tenants_.end()) return bytes <= limits_.most_bytes;
    const Tenant& own = found->second;
    return own.urgent.size() + own.later.size() < limits_.most_jobs &&
           own.bytes + bytes <= limits_.most_bytes;
}

void Queue::put(TenantId tenant, const QueuedPointer& job, bool urgent) {
    Tenant& own = tenants_[tenant];
    (urgent ? own.urgent : own.later).push_back(job);
    own.bytes += job->bytes;
    if (job->tenants.empty()) ++size_, bytes_ += job->bytes;
    job->tenants.push_back(tenant);
}

bool Queue::take_out(Tenant& tenant, const QueuedPointer& job) {
    for (std::deque<QueuedPointer>* queue : {&tenant.urgent, &tenant.later}) {
        auto found = std::find(queue->begin(), queue->end(), job);
        if (found == queue->end()) continue;
        queue->erase(found);
        tenant.bytes -= job->bytes;
        return true;
    }
    return false;
}

void Queue::forget_if_empty(TenantId tenant) {
    auto found = tenants_.find(tenant);
    if (found == tenants_.end()) return;
    const Tenant& own = found->second;
    if (own.urgent.empty() && own.later.empty() && own.running == 0) tenants_.erase(found);
}

bool Queue::add(TenantId tenant, const QueuedPointer& job) {
    if (std::count(job->tenants.begin(), job->tenants.end(), tenant)) return true;
    const bool more = job->tenants.empty();  // or it is held already
    if (!has_room(tenant, job->bytes) || (more && bytes_ + job->bytes > limits_.most_bytes_of_all))
        return false;
    put(tenant, job, false);
    return true;
}

void Queue::hurry(TenantId tenant, const QueuedPointer& job) {
    if (job->tenants.empty()) return;
    Tenant& own = tenants_[tenant];
    if (std::count(own.urgent.begin(), own.urgent.end(), job)) return;
    if (!take_out(own, job)) return put(tenant, job, true);
    own.urgent.push_back(job);
    own.bytes += job->bytes;
}

void Queue::drop(const QueuedPointer& job) {
    if (job->tenants.empty()) return;
    --size_, bytes_ -= job->bytes;
    for (TenantId each : std::exchange(job->tenants, {})) {
        take_out(tenants_[each], job);
        forget_if_empty(each);
    }
}

QueuedPointer Queue::take(TenantId tenant) {
    Tenant& own = tenants_[tenant];
    QueuedPointer job = own.urgent.empty() ? own.later.front() : own.urgent.front();
    ++own.running;
    job->running_for = last_ = tenant;
    drop(job);
    return job;
}

QueuedPointer Queue::next() {
    for (bool urgent : {true, false}) {
        // Those behind the one that had the last turn, then from the first on.
        auto turn = tenants_.upper_bound(last_);
        for (size_t i = 0; i < tenants_.size(); ++i, ++turn) {
            if (turn == tenants_.end()) turn = tenants_.begin();
            const Tenant& own = turn->second;
            if (own.running < most_running_ && !(urgent ? own.urgent : own.later).empty())
                return take(turn->first);
        }
    }
    return nullptr;
}

void Queue::done(const Queued& job) {
    auto found = tenants_.find(job.running_for);
    if (found == tenants_.end()) return;
    --found->second.running;
    forget_if_empty(job.running_for);
}

std::vector<QueuedPointer> Queue::leave(TenantId tenant) {
    std::vector<QueuedPointer> dropped;
    auto found = tenants_.find(tenant);
    if (found == tenants_.end()) return dropped;
    Tenant& own = found->second;
    std::deque<QueuedPointer> left = std::move(own.urgent);
    left.insert(left.end(), own.later.begin(), own.later.end());
    own.urgent.clear(), own.later.clear();
    own.bytes = 0;
    for (const QueuedPointer& job : left) {
        std::erase(job->tenants, tenant);
        if (!job->tenants.empty()) continue;
        --size_, bytes_ -= job->bytes;  // put() adds them
        if (has_room(kNoTenant, job->bytes))
            put(kNoTenant, job, false);
        else
            dropped.push_back(job);
    }
    forget_if_empty(tenant);
    return dropped;
}

}  // namespace smt::runtime::jit
