#include "runtime/image/core_dump.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include "runtime/image/elf_file.h"

namespace smt::image {

namespace {

constexpr uint16_t kCudaMachine = 0xbe;

// Section types, counted from SHT_LOUSER.
enum class Table : uint32_t {
    kCubin = 7,
    kMultiprocessors = 11,
    kGrids = 12,
    kCtas = 13,
    kWarps = 14,
    kThreads = 15,
    kModules = 16,
};

// Rows as every driver has them; what later drivers append is left out, but for the multiprocessor's
// exception (driver 555).
struct MultiprocessorRow {
    uint32_t number, padding;
    uint32_t exception, error_pc_valid;
    uint64_t error_pc;
};
constexpr size_t kLeastMultiprocessorRow = 8;

struct CtaRow {
    uint64_t grid;
    std::array<uint32_t, 3> index;
    uint32_t padding;
};

struct WarpRow {
    uint64_t error_pc;
    uint32_t warp, valid_lanes, active_lanes, at_breakpoint, error_pc_valid, padding;
};

struct ThreadRow {
    uint64_t virtual_pc, physical_pc;
    uint32_t lane;
    std::array<uint32_t, 3> index;
    uint32_t exception, call_depth, syscall_depth, condition;
};

struct GridRow {
    uint64_t number, context, function, entry, module, parent, parameters;
    uint32_t type, origin, status, registers;
    std::array<uint32_t, 3> grid, block;
    uint32_t blocking, host_thread;
};

// The tables, and the way from a row to the tables that hang on it.
class Dump {
public:
    explicit Dump(const ElfFile& file) : file_(file) {
        for (uint32_t i = 0; i < file_.sections().size(); ++i) {
            const Elf64_Shdr& section = file_.sections()[i];
            if (section.sh_type > SHT_LOUSER)
                by_parent_.try_emplace({section.sh_type - SHT_LOUSER, section.sh_link, section.sh_info}, i);
        }
    }

    std::vector<uint32_t> all(Table table) const {
        const auto type = static_cast<uint32_t>(table);
        std::vector<uint32_t> found;
        for (auto i = by_parent_.lower_bound({type, 0, 0});
             i != by_parent_.end() && std::get<0>(i->first) == type; ++i)
            found.push_back(i->second);
        return found;
    }
    std::optional<uint32_t> below(Table table, uint32_t parent, uint32_t row) const {
        const auto found = by_parent_.find({static_cast<uint32_t>(table), parent, row});
        return found == by_parent_.end() ? std::nullopt : std::optional(found->second);
    }
    uint32_t parent(uint32_t section) const { return file_.sections()[section].sh_link; }
    uint32_t parent_row(uint32_t section) const { return file_.sections()[section].sh_info; }
    std::string_view content(uint32_t section) const { return file_.content(section); }

    // Nothing: there is no such row, or it is shorter than every driver's.
    template <typename Row>
    std::optional<Row> row(uint32_t section, uint64_t number, size_t least = sizeof(Row)) const {
        if (section >= file_.sections().size()) return std::nullopt;
        const uint64_t size = file_.sections()[section].sh_entsize;
        const std::string_view bytes = file_.content(section);
        if (size < least || number >= bytes.size() / size) return std::nullopt;
        Row row{};
        std::memcpy(&row, bytes.data() + number * size, std::min<uint64_t>(size, sizeof row));
        return row;
    }
    template <typename Row, typename Visit>
    void each(uint32_t section, Visit visit, size_t least = sizeof(Row)) const {
        for (uint32_t i = 0; const auto found = row<Row>(section, i, least); ++i) visit(*found, i);
    }

private:
    const ElfFile& file_;
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t>
        by_parent_;  // type, parent, row there -> section
};

// The strongest sign of a fault wins: other CTAs are in the dump because they ran at the time.
enum class Sign { kNone, kBreakpoint, kErrorPc, kException };

Sign sign_of(const Dump& dump, uint32_t ctas, uint32_t row) {
    Sign sign = Sign::kNone;
    const auto warps = dump.below(Table::kWarps, ctas, row);
    if (!warps) return sign;
    dump.each<WarpRow>(*warps, [&](const WarpRow& warp, uint32_t number) {
        if (warp.at_breakpoint) sign = std::max(sign, Sign::kBreakpoint);
        if (warp.error_pc_valid) sign = std::max(sign, Sign::kErrorPc);
        const auto threads = dump.below(Table::kThreads, *warps, number);
        if (!threads) return;
        dump.each<ThreadRow>(*threads, [&](const ThreadRow& thread, uint32_t) {
            if (thread.exception) sign = Sign::kException;
        });
    });
    return sign;
}

std::optional<CtaRow> faulting_cta(const Dump& dump) {
    Sign best = Sign::kNone;
    std::optional<CtaRow> found;
    for (uint32_t ctas : dump.all(Table::kCtas)) {
        dump.each<CtaRow>(ctas, [&](const CtaRow& cta, uint32_t row) {
            const Sign sign = sign_of(dump, ctas, row);
            if (sign > best) best = sign, found = cta;
        });
    }
    return found;
}

// The symbol whose code holds that address, and its module.
FaultSite site_at(const Dump& dump, uint64_t pc) {
    constexpr std::string_view kText = ".text.";
    for (uint32_t cubin : dump.all(Table::kCubin)) {
        const auto read = ElfFile::read(dump.content(cubin));
        const auto* file = std::get_if<ElfFile>(&read);
        if (!file) continue;
        for (const Elf64_Shdr& section : file->sections())
            if (section.sh_addr <= pc && pc - section.sh_addr < section.sh_size &&
                file->name_begins(section, kText))
                return {std::string(file->name(section).substr(kText.size())),
                        dump.row<uint64_t>(dump.parent(cubin), dump.parent_row(cubin)).value_or(0),
                        std::nullopt};
    }
    return {};
}

std::optional<FaultSite> site_of(const Dump& dump, const CtaRow& cta) {
    std::optional<FaultSite> site;
    for (uint32_t grids : dump.all(Table::kGrids))
        dump.each<GridRow>(grids, [&](const GridRow& grid, uint32_t) {
            if (grid.number != cta.grid) return;
            site = site_at(dump, grid.entry);
            site->module = grid.module;
            site->place = FaultSite::Place{grid.grid, grid.block, cta.index};
        });
    return site;
}

std::optional<FaultSite> site_of_ended_cta(const Dump& dump) {
    std::optional<FaultSite> site;
    for (uint32_t multiprocessors : dump.all(Table::kMultiprocessors))
        dump.each<MultiprocessorRow>(
            multiprocessors,
            [&](const MultiprocessorRow& row, uint32_t) {
                if (!site && row.exception && row.error_pc_valid) site = site_at(dump, row.error_pc);
            },
            kLeastMultiprocessorRow);
    return site;
}

}  // namespace

std::string describe(const FaultSite& site) {
    if (!site.place) return {};
    const FaultSite::Place& place = *site.place;
    return fmt::format(", CTA ({}) of ({}), blocks of ({})", fmt::join(place.cta, ","),
                       fmt::join(place.grid, ","), fmt::join(place.block, ","));
}

std::variant<FaultSite, Problem> read_core_dump(std::string_view bytes) {
    const auto read = ElfFile::read(bytes);
    if (const auto* problem = std::get_if<Problem>(&read)) return *problem;
    const auto& file = std::get<ElfFile>(read);
    if (file.header().e_machine != kCudaMachine || file.header().e_type != ET_CORE)
        return Problem{"an ELF file that is not the core dump of a GPU"};
    const Dump dump(file);
    const std::optional<CtaRow> cta = faulting_cta(dump);
    std::optional<FaultSite> site = cta ? site_of(dump, *cta) : site_of_ended_cta(dump);
    if (!site) return Problem{"a core dump that shows no fault"};
    return *site;
}

}  // namespace smt::image
