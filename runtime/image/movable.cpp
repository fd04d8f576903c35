// See movable.h. A variable can be moved if
//   - its symbol has a size, a name of its own and bytes of its own in .nv.global or .nv.global.init
//   - every relocation that names it is of a kind that can be carried out here
//   - its first value holds no address: that has a relocation, which only the driver can carry out
// A relocation by way of a section keeps all variables of that section.
#include "runtime/image/movable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/image/bytes.h"
#include "runtime/image/constant_bank.h"
#include "runtime/image/elf_file.h"
#include "runtime/image/redirect.h"

namespace smt::image {

namespace {

constexpr std::string_view kVariableSections = ".nv.global", kConstantBank = ".nv.constant3";
constexpr std::string_view kNvidiaTables = "__cudart_";
constexpr unsigned char kManagedSymbol = 0x04;             // in st_other
constexpr unsigned kFirstTexture = 10, kLastTexture = 12;  // symbol types
constexpr uint64_t kPlaceAlignment = 256;                  // of each variable
constexpr size_t kMostMoved = 1u << 15;
constexpr uint64_t kWidest = 8;  // bytes of what a relocation changes

struct Movable {
    std::string name;
    uint32_t section = 0;
    uint64_t value = 0, bytes = 0;
    bool stays = false, used = false;
    uint64_t offset = 0;  // in the block
};

MovablePlan nothing(std::string why) {
    MovablePlan none;
    none.stays = std::move(why);
    return none;
}

class MovableScan {
public:
    MovableScan(const ElfFile& file, std::string_view image, bool tables)
        : file_(file), image_(image), tables_(tables) {}

    MovablePlan scan() {
        const auto& sections = file_.sections();
        for (uint32_t i = 0; i < sections.size(); ++i)
            if (sections[i].sh_type == SHT_SYMTAB && !read_symbols(i))
                return nothing("symbols that lead nowhere");
        keep_what_overlaps();
        for (uint32_t i = 0; i < sections.size(); ++i)
            if (!each_relocation(i, [&](const Relocation& each) { look_at(each); }))
                return nothing("relocations that lead nowhere");
        MovablePlan result;
        for (const auto& [index, variable] : variables_)
            if (variable.stays && variable.used)
                stays(fmt::format("{}, which cannot be moved", variable.name));
        place(result.plan);
        if (result.plan.bytes != 0 && !redirect(result.plan))
            return nothing("addresses that cannot be changed");
        look_at_bank();
        result.stays = std::move(stays_);
        result.constants = std::move(constants_);
        return result;
    }

private:
    struct Relocation {
        uint32_t section = 0;  // of the relocations
        uint32_t target = 0;
        bool with_addend = false;
        uint32_t symbol = 0;
        Elf64_Rela entry{};
    };

    void stays(std::string what) {
        if (stays_.empty()) stays_ = std::move(what);
    }

    // One table only: relocations name symbols by their number in it.
    bool read_symbols(uint32_t table) {
        if (table_) return false;
        table_ = table;
        const std::string_view symbols = file_.content(table);
        const std::string_view names = file_.content(file_.sections()[table].sh_link);
        std::set<std::string> known;
        Elf64_Sym symbol;
        for (uint32_t i = 0; read_at(symbols, uint64_t{i} * sizeof symbol, &symbol); ++i) {
            if (symbol.st_shndx >= file_.sections().size() || ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT ||
                (symbol.st_other & kManagedSymbol) != 0)
                continue;
            const Elf64_Shdr& section = file_.sections()[symbol.st_shndx];
            std::string name(ElfFile::text_at(names, symbol.st_name));
            if (file_.name_begins(section, kConstantBank)) {
                named_bank_ = true;
                if (!name.starts_with(kNvidiaTables)) constants_.push_back(name);
            }
            if (!file_.name_begins(section, kVariableSections) || is_left(section, name)) continue;
            Movable variable{name, symbol.st_shndx, symbol.st_value, symbol.st_size};
            const bool inside =
                symbol.st_value <= section.sh_size && symbol.st_size <= section.sh_size - symbol.st_value;
            variable.stays =
                name.empty() || symbol.st_size == 0 || !inside || section.sh_addr != 0 ||
                section.sh_addralign > kPlaceAlignment ||
                (section.sh_type != SHT_NOBITS && file_.content(section).size() != section.sh_size);
            if (!inside) variable.value = variable.bytes = 0;
            if (!known.insert(std::move(name)).second) twice_.insert(variable.name);
            variables_.emplace(i, std::move(variable));
        }
        for (auto& [index, variable] : variables_) variable.stays |= twice_.contains(variable.name);
        return true;
    }

    void keep_what_overlaps() {
        for (auto& [index, variable] : variables_) places_[variable.section].push_back(&variable);
        for (auto& [section, inside] : places_) {
            std::sort(inside.begin(), inside.end(),
                      [](const Movable* a, const Movable* b) { return a->value < b->value; });
            Movable* furthest = nullptr;  // the one before that ends last
            for (Movable* each : inside) {
                if (furthest && each->value < furthest->value + furthest->bytes)
                    each->stays = furthest->stays = true;
                if (!furthest || each->value + each->bytes > furthest->value + furthest->bytes)
                    furthest = each;
            }
        }
    }

    // False: a section of relocations is not as it should be. Those for debuggers are left out.
    template <typename Visit>
    bool each_relocation(uint32_t index, const Visit& visit) const {
        const auto& sections = file_.sections();
        const Elf64_Shdr& section = sections[index];
        if (section.sh_type != SHT_RELA && section.sh_type != SHT_REL) return true;
        if (section.sh_info >= sections.size()) return false;
        if (!(sections[section.sh_info].sh_flags & SHF_ALLOC)) return true;
        Relocation each;
        each.section = index;
        each.target = section.sh_info;
        each.with_addend = section.sh_type == SHT_RELA;
        const uint64_t bytes = each.with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
        const std::string_view content = file_.content(section);
        if (content.size() != section.sh_size || !table_ || section.sh_link != *table_)
            return section.sh_size == 0;
        for (uint64_t at = 0; at + bytes <= content.size(); at += bytes) {
            each.entry = {};
            std::memcpy(&each.entry, content.data() + at, bytes);
            each.symbol = static_cast<uint32_t>(ELF64_R_SYM(each.entry.r_info));
            visit(std::as_const(each));
        }
        return true;
    }

    void look_at(const Relocation& each) {
        const bool in_value = places_.contains(each.target) || is_variables(each.target);
        if (in_value) keep_value(each.target, each.entry.r_offset);
        const auto variable = variables_.find(each.symbol);
        if (variable != variables_.end()) {
            variable->second.used |= !in_value;
            if (!redirection(each, 0)) variable->second.stays = true;
            return;
        }
        Elf64_Sym symbol{};
        if (!read_at(file_.content(*table_), uint64_t{each.symbol} * sizeof symbol, &symbol))
            return stays("a symbol that is not there");
        look_at_other(symbol, in_value);
    }

    // Of a relocation whose symbol is no variable that could be moved.
    void look_at_other(const Elf64_Sym& symbol, bool in_value) {
        const unsigned type = ELF64_ST_TYPE(symbol.st_info);
        const auto& sections = file_.sections();
        if (type >= kFirstTexture && type <= kLastTexture) return stays("texture or surface references");
        if (symbol.st_shndx >= sections.size()) return;  // elsewhere: printf
        const Elf64_Shdr& section = sections[symbol.st_shndx];
        const std::string_view names = file_.content(sections[*table_].sh_link);
        if (is_left(section, ElfFile::text_at(names, symbol.st_name))) return;
        if (file_.name_begins(section, kConstantBank)) return stays(std::string(kConstantTaken));
        if (!file_.name_begins(section, kVariableSections)) return;
        if (type == STT_SECTION)
            for (Movable* each : places_[symbol.st_shndx]) each->stays = true;
        if (!in_value || type == STT_SECTION) stays("a variable without a symbol of its own");
    }

    bool is_left(const Elf64_Shdr& section, std::string_view name) const {
        return name.starts_with(kNvidiaTables) && (!tables_ || file_.name_begins(section, kConstantBank));
    }

    // Constants without symbols have no name by which a program could ask for them; code may take an address.
    void look_at_bank() {
        if (constants_.empty() && (named_bank_ || !has_bank())) return;
        const auto taken = takes_constant_address(file_, cubin_architecture(image_));
        if (taken.value_or(true)) stays(std::string(taken ? kConstantTaken : kConstantsUnread));
    }

    bool has_bank() const {
        return std::any_of(file_.sections().begin(), file_.sections().end(), [&](const Elf64_Shdr& section) {
            return file_.name_begins(section, kConstantBank) && section.sh_size != 0;
        });
    }

    bool is_variables(uint32_t section) const {
        return file_.name_begins(file_.sections()[section], kVariableSections);
    }

    // The first value of the variable there has an address in it.
    void keep_value(uint32_t section, uint64_t at) {
        auto& inside = places_[section];
        auto next = std::upper_bound(inside.begin(), inside.end(), at,
                                     [](uint64_t place, const Movable* each) { return place < each->value; });
        while (next != inside.begin() && (*std::prev(next))->value + (*std::prev(next))->bytes > at)
            (*--next)->stays = true;
        next = std::upper_bound(inside.begin(), inside.end(), at,
                                [](uint64_t place, const Movable* each) { return place < each->value; });
        for (; next != inside.end() && (*next)->value - at < kWidest; ++next) (*next)->stays = true;
    }

    std::optional<ManagedPlan::Fixup> redirection(const Relocation& each, uint64_t offset) const {
        return redirect_to(image_, file_.sections()[each.target], each.entry, each.with_addend, offset);
    }

    void place(ManagedPlan& plan) {
        std::map<std::string_view, Movable*> by_name;
        for (auto& [index, variable] : variables_)
            if (!variable.stays) by_name[variable.name] = &variable;
        if (by_name.size() > kMostMoved) {
            by_name.clear();
            for (auto& [index, variable] : variables_) variable.stays = true;
            stays("more variables than can be moved");
        }
        uint64_t end = MovablePlan::kFirst;
        for (auto& [name, variable] : by_name) {
            const Elf64_Shdr& section = file_.sections()[variable->section];
            if (variable->bytes > ManagedPlan::kMostBytes - end) {
                variable->stays = true;
                if (variable->used) stays(fmt::format("{}, which is too large", variable->name));
                continue;
            }
            variable->offset = end;
            plan.variables[variable->name] = {end, variable->bytes};
            if (section.sh_type != SHT_NOBITS)
                plan.initials.push_back({end, variable->bytes, section.sh_offset + variable->value});
            end = (end + variable->bytes + kPlaceAlignment - 1) & ~(kPlaceAlignment - 1);
            if (end > ManagedPlan::kMostBytes) end = ManagedPlan::kMostBytes;
        }
        plan.bytes = plan.variables.empty() ? 0 : end;
    }

    bool redirect(ManagedPlan& plan) const {
        bool good = true;
        for (uint32_t i = 0; i < file_.sections().size(); ++i) {
            const Elf64_Shdr& section = file_.sections()[i];
            ManagedPlan::Trimmed trimmed{
                file_.header().e_shoff + i * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size),
                section.sh_offset,
                section.sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel),
                {}};
            bool any = false;
            each_relocation(i, [&](const Relocation& each) {
                const auto found = variables_.find(each.symbol);
                const bool moves = found != variables_.end() && !found->second.stays;
                trimmed.dropped.push_back(moves);
                if (!moves) return;
                any = true;
                const auto fixup = redirection(each, found->second.offset);
                good &= fixup.has_value();
                if (fixup) plan.fixups.push_back(*fixup);
            });
            if (any) plan.trimmed.push_back(std::move(trimmed));
        }
        return good;
    }

    const ElfFile& file_;
    const std::string_view image_;
    const bool tables_;
    std::optional<uint32_t> table_;                     // the section of symbols
    std::map<uint32_t, Movable> variables_;             // by symbol
    std::map<uint32_t, std::vector<Movable*>> places_;  // by section, in order
    std::set<std::string> twice_;                       // names of several variables
    std::vector<std::string> constants_;
    bool named_bank_ = false;  // .nv.constant3 has a symbol
    std::string stays_;
};

}  // namespace

MovablePlan movable_plan(std::string_view cubin, bool tables) {
    const auto read = ElfFile::read(cubin);
    const auto* file = std::get_if<ElfFile>(&read);
    if (cubin_architecture(cubin) == 0 || !file) return nothing("what cannot be read");
    return MovableScan(*file, cubin, tables).scan();
}

}  // namespace smt::image
