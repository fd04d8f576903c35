// Which entry the driver takes: tables of what is there, what device asks, and what it gets.
#include "runtime/image/choice.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/image/made.h"

namespace smt::image {
namespace {

// Entries from words like "sm_90a compute_80", and back.
std::vector<Entry> entries_named(const std::string& words) {
    std::vector<Entry> entries;
    std::istringstream in(words);
    for (std::string word; in >> word;) {
        Entry entry;
        entry.kind = word.starts_with("sm_")    ? Kind::kCubin
                     : word.starts_with("lto_") ? Kind::kOther
                                                : Kind::kPtx;
        std::istringstream number(word.substr(word.find('_') + 1));
        number >> entry.architecture >> entry.variant;
        entries.push_back(entry);
    }
    return entries;
}

std::string chosen(const std::string& words, const Device& device) {
    const std::vector<Entry> entries = entries_named(words);
    const Entry* entry = choose(entries, device);
    return entry ? target_of(*entry) : "none";
}

TEST_CASE("the driver's choice", "[image]") {
    struct {
        const char* entries;
        int device;
        const char* chosen;
    } const kTable[] = {
        // cubins: the same first digits, and not newer
        {"sm_80", 80, "sm_80"},
        {"sm_80", 86, "sm_80"},
        {"sm_86", 80, "none"},
        {"sm_80", 90, "none"},
        {"sm_80 sm_86 sm_75", 89, "sm_86"},
        {"sm_86 sm_80", 80, "sm_80"},
        {"sm_100", 103, "sm_100"},
        {"sm_120", 121, "sm_120"},
        {"sm_100", 110, "none"},
        // as the programming guide's example has it
        {"sm_50 sm_60 sm_70 compute_70", 52, "sm_50"},
        {"sm_50 sm_60 sm_70 compute_70", 61, "sm_60"},
        {"sm_50 sm_60 sm_70 compute_70", 75, "sm_70"},
        {"sm_50 sm_60 sm_70 compute_70", 80, "compute_70"},
        // a cubin that runs is preferred to newer PTX
        {"compute_89 sm_80", 89, "sm_80"},
        // PTX: the newest that is not newer than the device
        {"compute_80 compute_75 compute_100", 90, "compute_80"},
        {"compute_80 compute_75 compute_100", 79, "compute_75"},
        {"compute_80 compute_75 compute_100", 121, "compute_100"},
        {"compute_80", 75, "none"},
        // one architecture alone
        {"sm_90a", 90, "sm_90a"},
        {"sm_90 sm_90a", 90, "sm_90a"},
        {"sm_90a sm_90", 90, "sm_90a"},
        {"sm_100a", 103, "none"},
        {"compute_90a", 100, "none"},
        {"compute_90a compute_90", 100, "compute_90"},
        {"compute_90a compute_90", 90, "compute_90a"},
        // one family, from itself on
        {"sm_100f", 103, "sm_100f"},
        {"sm_103f", 100, "none"},
        {"compute_100f", 100, "compute_100f"},
        {"compute_100f", 103, "compute_100f"},
        {"compute_100f", 120, "none"},
        {"compute_100f compute_90", 120, "compute_90"},
        {"compute_100f compute_100a compute_100", 100, "compute_100a"},
        {"compute_100f compute_100", 103, "compute_100f"},
        // Tegra's cubins run on their own architecture
        {"sm_87", 87, "sm_87"},
        {"sm_86", 87, "none"},
        {"sm_87", 89, "none"},
        {"sm_86 compute_86", 87, "compute_86"},
        {"sm_70", 72, "none"},
        // link-time code is nothing to run
        {"lto_90", 90, "none"},
        {"", 90, "none"},
    };
    for (const auto& row : kTable) {
        INFO(row.entries << " on " << row.device);
        CHECK(chosen(row.entries, {row.device}) == row.chosen);
    }
}

TEST_CASE("cubins or PTX can be left out", "[image]") {
    const std::string both = "sm_90 compute_80";
    CHECK(chosen(both, {90, false, true}) == "compute_80");
    CHECK(chosen(both, {90, true, false}) == "sm_90");
    CHECK(chosen("sm_90", {90, false, true}) == "none");
    CHECK(chosen("compute_90", {90, true, false}) == "none");
}

TEST_CASE("the environment says what is left out", "[image]") {
    ::unsetenv("CUDA_DISABLE_PTX_JIT");
    ::setenv("CUDA_FORCE_PTX_JIT", "1", 1);
    CHECK(chosen("sm_90 compute_80", device_from_environment(90)) == "compute_80");
    ::setenv("CUDA_FORCE_PTX_JIT", "0", 1);
    CHECK(chosen("sm_90 compute_80", device_from_environment(90)) == "sm_90");
    ::unsetenv("CUDA_FORCE_PTX_JIT");
    ::setenv("CUDA_DISABLE_PTX_JIT", "1", 1);
    CHECK(chosen("compute_80", device_from_environment(90)) == "none");
    ::unsetenv("CUDA_DISABLE_PTX_JIT");
}

TEST_CASE("entries of a fatbin have their targets", "[image]") {
    const std::string image = fatbin({{1, 90, kSpecific, "s"}, {2, 100, kFamily, "f"}, {2, 80, 0, "n"}});
    auto read_image = read(image);
    auto& entries = std::get<std::vector<Entry>>(read_image);
    CHECK(target_of(entries[0]) == "compute_90a");
    CHECK(target_of(entries[1]) == "sm_100f");
    CHECK(best_ptx(entries, 90)->stored[0] == 's');
    CHECK(best_ptx(entries, 100) == nullptr);
    CHECK(best_cubin(entries, 103)->stored[0] == 'f');
    CHECK(best_cubin(entries, 89)->stored[0] == 'n');
}

}  // namespace
}  // namespace smt::image
