#include "runtime/server/code/managed_variables.h"

#include <cstring>

namespace smt::runtime::server {

using image::ManagedPlan;

void redirect(const ManagedPlan& plan, std::vector<char>& image, uint64_t address) {
    for (const ManagedPlan::Fixup& fixup : plan.fixups) {
        uint64_t value = address + fixup.value;
        uint32_t half = static_cast<uint32_t>(fixup.kind == ManagedPlan::Kind::kLow ? value : value >> 32);
        if (fixup.kind == ManagedPlan::Kind::kWhole)
            std::memcpy(image.data() + fixup.at, &value, sizeof value);
        else
            std::memcpy(image.data() + fixup.at, &half, sizeof half);
    }
    for (const ManagedPlan::Trimmed& section : plan.trimmed) {
        uint64_t kept = 0;
        char* entries = image.data() + section.at;
        for (uint64_t i = 0; i < section.dropped.size(); ++i) {
            if (section.dropped[i]) continue;
            std::memmove(entries + kept, entries + i * section.entry_bytes, section.entry_bytes);
            kept += section.entry_bytes;
        }
        std::memcpy(image.data() + section.size_at, &kept, sizeof kept);
    }
}

void ManagedVariables::place(std::vector<char>& image, uint64_t address) {
    memory_ = address;
    for (const ManagedPlan::Initial& initial : plan_.initials)
        std::memcpy(reinterpret_cast<char*>(address + initial.offset), image.data() + initial.at,
                    initial.bytes);
    redirect(plan_, image, address);
    plan_.initials.clear();
    plan_.fixups.clear();
    plan_.trimmed.clear();
}

bool ManagedVariables::look_up(const char* name, uint64_t* address, uint64_t* bytes) const {
    auto found = plan_.variables.find(name);
    if (memory_ == 0 || found == plan_.variables.end()) return false;
    *address = memory_ + found->second.offset;
    *bytes = found->second.bytes;
    return true;
}

}  // namespace smt::runtime::server
