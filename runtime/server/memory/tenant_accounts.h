// The device memory of each tenant: one account for all its programs, and its limit. Programs that were given
// no tenant's name are one tenant with their children (sharing.h: family).
//
// The limit is the one that a program brought along last (SMT_MEMORY_LIMIT), or that `smt set` gave the
// tenant while it was there. An account is forgotten with the last of the tenant's programs.
//
// Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/server/memory/memory_account.h"

namespace smt::runtime::server {

class TenantAccounts {
public:
    // For a program that begins. limit: bytes; 0: it brings none along. `user`: the account of the user whose
    // tenant it is; null: none.
    MemoryAccountPointer open(const std::string& family, uint64_t limit, MemoryAccountPointer user = nullptr);
    // For an account of open(). From now on no program changes it. bytes; 0: the device's.
    void set_limit(const MemoryAccountPointer& account, uint64_t limit);

private:
    struct Entry {
        std::weak_ptr<MemoryAccount> account;
        bool set = false;  // the limit, by set_limit()
    };

    std::mutex mutex_;
    std::map<std::string, Entry> tenants_;  // by family
};

}  // namespace smt::runtime::server
