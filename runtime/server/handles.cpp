#include "runtime/server/handles.h"

namespace smt::runtime::server {

namespace {

bool counted(HandleKind kind) { return kind == HandleKind::kPhysicalMemory || kind == HandleKind::kUserObject; }

template <typename Handle>
void destroy_with(CUresult (*function)(Handle), uint64_t handle) {
    if (!function) return;
    if constexpr (std::is_pointer_v<Handle>) {
        function(reinterpret_cast<Handle>(handle));
    } else {
        function(static_cast<Handle>(handle));
    }
}

void destroy(const DriverApi& driver, HandleKind kind, uint64_t handle, uint64_t count) {
    switch (kind) {
        case HandleKind::kGraph: return destroy_with(driver.cuGraphDestroy, handle);
        case HandleKind::kGraphExec: return destroy_with(driver.cuGraphExecDestroy, handle);
        case HandleKind::kArray: return destroy_with(driver.cuArrayDestroy, handle);
        case HandleKind::kMipmappedArray: return destroy_with(driver.cuMipmappedArrayDestroy, handle);
        case HandleKind::kTexture: return destroy_with(driver.cuTexObjectDestroy, handle);
        case HandleKind::kSurface: return destroy_with(driver.cuSurfObjectDestroy, handle);
        case HandleKind::kLink: return destroy_with(driver.cuLinkDestroy, handle);
        case HandleKind::kTextureReference: return destroy_with(driver.cuTexRefDestroy, handle);
        case HandleKind::kPhysicalMemory:
            for (; count > 0; --count) destroy_with(driver.cuMemRelease, handle);
            return;
        case HandleKind::kUserObject:
            if (driver.cuUserObjectRelease) {
                driver.cuUserObjectRelease(reinterpret_cast<CUuserObject>(handle), static_cast<unsigned>(count));
            }
            return;
        case HandleKind::kGraphNode:          // goes with its graph
        case HandleKind::kPool:               // TenantMemory's
        case HandleKind::kSurfaceReference:   // goes with its module
        case HandleKind::kCount: return;
    }
}

}  // namespace

bool Handles::owned(HandleKind kind, uint64_t handle) const {
    if (handle == 0 || kind >= HandleKind::kCount) return false;
    std::lock_guard lock(mutex_);
    return tables_[static_cast<size_t>(kind)].contains(handle);
}

void Handles::adopt(HandleKind kind, uint64_t handle) {
    if (handle == 0 || kind >= HandleKind::kCount) return;
    std::lock_guard lock(mutex_);
    Entry& entry = tables_[static_cast<size_t>(kind)][handle];
    entry.count = counted(kind) ? entry.count + 1 : 1;
}

void Handles::lend(HandleKind kind, uint64_t handle) {
    if (handle == 0 || kind >= HandleKind::kCount) return;
    std::lock_guard lock(mutex_);
    tables_[static_cast<size_t>(kind)].try_emplace(handle);
}

void Handles::forget(HandleKind kind, uint64_t handle) {
    if (kind >= HandleKind::kCount) return;
    std::lock_guard lock(mutex_);
    Table& table = tables_[static_cast<size_t>(kind)];
    auto entry = table.find(handle);
    if (entry == table.end()) return;
    if (entry->second.count > 1) {
        --entry->second.count;
    } else {
        table.erase(entry);
    }
}

void Handles::destroy_all(const DriverApi& driver) {
    std::array<Table, static_cast<size_t>(HandleKind::kCount)> tables;
    {
        std::lock_guard lock(mutex_);
        tables.swap(tables_);
    }
    for (size_t kind = 0; kind < tables.size(); ++kind) {
        for (const auto& [handle, entry] : tables[kind]) {
            if (entry.count > 0) destroy(driver, static_cast<HandleKind>(kind), handle, entry.count);
        }
    }
}

}  // namespace smt::runtime::server
