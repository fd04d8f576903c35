#include "tools/smt/inspect_door.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "rewriter/machine_code/patch.h"
#include "tools/smt/json.h"

namespace smt::tools {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
}

class DoorCounter {
public:
    explicit DoorCounter(machine_code::Assembler assembler)
        : prologues_([this, assembler = std::move(assembler)](const std::string& ptx,
                                                              const std::string& architecture) {
              const auto begin = Clock::now();
              auto cubin = assembler(ptx, architecture);
              assembling_ += seconds_between(begin, Clock::now());
              return cubin;
          }) {}

    void count(const std::string& cubin, DoorRow& row) {
        ++row.cubins;
        row.bytes += cubin.size();
        assembling_ = 0;
        const auto begin = Clock::now();
        auto patched = machine_code::patch(cubin, prologues_);
        row.patch_seconds += seconds_between(begin, Clock::now()) - assembling_;
        if (auto* problem = std::get_if<image::Problem>(&patched)) {
            ++row.cubin_reasons[problem->text];
            return;
        }
        const auto& result = std::get<machine_code::Patched>(patched);
        row.patched_cubins += !result.cubin.empty();
        for (const machine_code::PatchedEntry& entry : result.entries) {
            ++row.entries;
            if (entry.reason.empty())
                ++row.patched;
            else
                ++row.entry_reasons[entry.reason];
        }
    }

private:
    double assembling_ = 0;  // of the cubin that is patched, in seconds
    machine_code::Prologues prologues_;
};

double megabytes_per_second(const DoorRow& row) {
    return row.patch_seconds > 0 ? static_cast<double>(row.bytes) * 1e-6 / row.patch_seconds : 0;
}

std::string reasons_json(const std::map<std::string, size_t>& reasons) {
    std::string text;
    for (const auto& [reason, count] : reasons)
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", json_string(reason), count);
    return "{" + text + "}";
}

}  // namespace

DoorRows door_rows(const image::Container& file, int architecture, machine_code::Assembler assembler) {
    DoorRows rows;
    DoorCounter counter(std::move(assembler));
    for (const image::Found& found : file.images) {
        auto entries = image::read(found.bytes);
        if (!std::holds_alternative<std::vector<image::Entry>>(entries)) continue;
        for (const image::Entry& entry : std::get<0>(entries)) {
            if (entry.kind != image::Kind::kCubin) continue;
            if (architecture != 0 && entry.architecture != architecture) continue;
            DoorRow& row = rows[entry.architecture];
            auto cubin = image::expand(entry);
            if (auto* problem = std::get_if<image::Problem>(&cubin))
                ++row.cubins, ++row.cubin_reasons[problem->text];
            else
                counter.count(std::get<std::string>(cubin), row);
        }
    }
    return rows;
}

std::string door_text(const std::string& path, const DoorRows& rows) {
    std::string text = path + "\n";
    for (const auto& [architecture, row] : rows) {
        text +=
            fmt::format("sm_{}: {} of {} kernels get a door, in {} of {} cubins; {:.1f} MB, {:.0f} MB/s\n",
                        architecture, row.patched, row.entries, row.patched_cubins, row.cubins,
                        static_cast<double>(row.bytes) * 1e-6, megabytes_per_second(row));
        for (const auto& [reason, count] : row.entry_reasons)
            text += fmt::format("  left alone, {} kernel{}: {}\n", count, count == 1 ? "" : "s", reason);
        for (const auto& [reason, count] : row.cubin_reasons)
            text += fmt::format("  left alone, {} cubin{}: {}\n", count, count == 1 ? "" : "s", reason);
    }
    return text;
}

std::string door_json(const std::string& path, const DoorRows& rows) {
    std::string text;
    for (const auto& [architecture, row] : rows)
        text += fmt::format(
            "{}\n  {{\"architecture\": {}, \"cubins\": {}, \"patched_cubins\": {}, \"kernels\": {}, "
            "\"patched\": {}, \"bytes\": {}, \"megabytes_per_second\": {:.1f}, "
            "\"kernels_left_alone\": {}, \"cubins_left_alone\": {}}}",
            text.empty() ? "" : ",", architecture, row.cubins, row.patched_cubins, row.entries, row.patched,
            row.bytes, megabytes_per_second(row), reasons_json(row.entry_reasons),
            reasons_json(row.cubin_reasons));
    return fmt::format("{{\"file\": {}, \"door\": [{}\n]}}\n", json_string(path), text);
}

}  // namespace smt::tools
