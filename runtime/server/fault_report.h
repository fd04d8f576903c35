// The words about a fault that has lost the context: which kernel of which tenant it was, as far as that can
// be told, and of which tenants it was none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace smt::runtime::server {

// A tenant at the moment of the fault.
struct Suspect {
    std::string tenant;                                      // Session::called()
    uint64_t operations = 0;                                 // under way
    uint64_t launches = 0;                                   // of those the launches whose kernels are known
    std::vector<std::string> kernels;                        // their names, each once
    bool more = false;                                       // further launches may be under way
    std::string name{};                                      // the tenant's, alone
    bool cleared() const { return launches == 0 && !more; }  // it cannot have been a kernel of it
};

// Without a report of the device. `why`: why there is none.
std::string report_fault(const std::string& error, const std::string& why,
                         const std::vector<Suspect>& suspects);
// "It was no kernel of tenant a (x, pid 1), ...", or empty: some tenants are named, the others counted.
std::string report_cleared(const std::vector<Suspect>& suspects);

}  // namespace smt::runtime::server
