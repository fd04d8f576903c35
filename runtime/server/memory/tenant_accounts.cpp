#include "runtime/server/memory/tenant_accounts.h"

#include <utility>

namespace smt::runtime::server {

MemoryAccountPointer TenantAccounts::open(const std::string& family, uint64_t limit,
                                          MemoryAccountPointer user) {
    std::lock_guard lock(mutex_);
    std::erase_if(tenants_, [](const auto& each) { return each.second.account.expired(); });
    Entry& entry = tenants_[family];
    MemoryAccountPointer account = entry.account.lock();
    if (!account) entry = {account = std::make_shared<MemoryAccount>(limit, std::move(user))};
    if (limit && !entry.set) account->set_limit(limit);
    return account;
}

void TenantAccounts::set_limit(const MemoryAccountPointer& account, uint64_t limit) {
    std::lock_guard lock(mutex_);
    account->set_limit(limit);
    for (auto& [family, entry] : tenants_) entry.set |= entry.account.lock() == account;
}

}  // namespace smt::runtime::server
