// How `smt log` shows entries: as text for people or as one JSON object a line for programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/journal/journal.h"
#include "tools/smt/kernels_view.h"

namespace smt::tools {

// "_Z5saxpyPf" -> "saxpy(float*)"; what is not mangled stays as it is.
std::string demangle(const std::string& name);

// The multiprocessors that ran a launch, or may have; and as text: "0-3,6". Empty: not known.
std::vector<int> placed_on(const runtime::journal::Entry& entry);
std::string multiprocessors(const runtime::journal::Entry& entry);

// Follows the entries of one journal: knows which session belongs to which tenant, and counts.
class LogView {
public:
    // What is shown: each entry, as text or as JSON, or (kernels) a table of what ran and how, or (totals) a
    // line of JSON for each tenant about its sessions that have ended. `tenant`: only this one's entries;
    // empty: all entries. `mapping`: where managed kernels ran, too.
    struct Shape {
        bool json = false;
        bool mapping = false;
        bool kernels = false;
        bool totals = false;
        bool of_earlier_server = false;
        std::string tenant = {};
        std::string server = {};  // whose journal it is, for JSON
        std::string title = {};   // a line above the text; empty: none
    };
    LogView(const runtime::journal::Reader& reader, Shape shape)
        : reader_(reader), shape_(std::move(shape)) {}

    void show(const runtime::journal::Entry& entry);
    // Totals by tenant, then functions that programs called and smt does not support; or the table of
    // kernels, or what was asked for in its place.
    void show_summary();
    uint64_t shown() const { return shown_; }

private:
    struct Ended {
        uint64_t sessions = 0;
        uint64_t launches = 0;     // of these
        uint64_t received_ns = 0;  // that their completed work takes alone
    };
    struct Tenant {
        uint64_t sessions = 0;
        uint64_t launches = 0;
        uint64_t timed = 0;
        uint64_t gpu_ns = 0;
        Ended ended = {};
        std::map<std::string, std::map<uint32_t, uint64_t>> unsupported;  // function -> session -> calls
    };

    const std::string& tenant_of(const runtime::journal::Entry& entry);
    void count(const runtime::journal::Entry& entry, Tenant& tenant);
    void count_kernel(const runtime::journal::Entry& entry, const std::string& tenant);
    void show_text(const runtime::journal::Entry& entry, const std::string& tenant);
    void show_title();
    void show_totals() const;
    void show_json(const runtime::journal::Entry& entry, const std::string& tenant);
    std::string text(uint32_t index) const { return std::string(reader_.name(index)); }
    const std::string& kernel(uint32_t index);

    const runtime::journal::Reader& reader_;
    const Shape shape_;
    KernelTable table_;
    uint64_t shown_ = 0;
    bool headed_ = false;
    std::map<uint32_t, std::string> tenant_by_session_;
    std::map<uint32_t, std::string> kernels_;  // demangled, by name index
    std::map<std::string, Tenant> tenants_;
};

}  // namespace smt::tools
