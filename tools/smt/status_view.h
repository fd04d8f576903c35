// What `smt status` and `smt top` show: what servers say of their tenants, and their journals of what these
// did lately.
#pragma once

#include <map>
#include <string>

#include "tools/smt/control.h"
#include "tools/smt/usage.h"

namespace smt::tools {

std::string fault_text(const std::string& key);
// A line.
std::string status_json(const ServerStatus& status, const RecentUse& use);
std::string status_text(const ServerStatus& status, const RecentUse& use);
std::string memory_text(const ServerStatus& status);

class StatusView {
public:
    // Of every server that runs now, and the last fault of each GPU. Throws Failure: one does not answer.
    std::string text();
    std::string memory_text();  // of the same servers
    std::string json();         // a line for each of these servers
    // As far as its journal tells.
    RecentUse use_of(const ServerStatus& status);

private:
    // What was read of a server's journal: entries before are too old to count.
    struct Place {
        int server_pid = 0;
        uint64_t sequence = 0;
    };
    std::map<std::string, Place> read_;  // by key
};

}  // namespace smt::tools
