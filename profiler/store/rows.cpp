#include "profiler/store/rows.h"

#include <string>

namespace smt::profiler {

namespace {

constexpr char kSelect[] = R"(
SELECT id, kernel, image, block_x, block_y, block_z, grid_class, device,
       registers, local_bytes, static_shared_bytes, dynamic_shared_bytes, most_ctas_per_sm,
       counted_blocks, counted_ns, instructions, memory_instructions, uncoalesced_instructions,
       dram_reads, dram_writes, stops, stops_ns, slices, slices_ns
FROM profile WHERE )";

constexpr char kMerge[] = R"(
INSERT INTO profile (kernel, image, block_x, block_y, block_z, grid_class, device,
                     registers, local_bytes, static_shared_bytes, dynamic_shared_bytes, most_ctas_per_sm,
                     counted_blocks, counted_ns, instructions, memory_instructions, uncoalesced_instructions,
                     dram_reads, dram_writes, stops, stops_ns, slices, slices_ns, updated)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
        strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
ON CONFLICT DO UPDATE SET
    registers = coalesce(excluded.registers, registers),
    local_bytes = coalesce(excluded.local_bytes, local_bytes),
    static_shared_bytes = coalesce(excluded.static_shared_bytes, static_shared_bytes),
    dynamic_shared_bytes = coalesce(excluded.dynamic_shared_bytes, dynamic_shared_bytes),
    most_ctas_per_sm = coalesce(excluded.most_ctas_per_sm, most_ctas_per_sm),
    counted_blocks = counted_blocks + excluded.counted_blocks,
    counted_ns = counted_ns + excluded.counted_ns,
    instructions = instructions + excluded.instructions,
    memory_instructions = memory_instructions + excluded.memory_instructions,
    uncoalesced_instructions = uncoalesced_instructions + excluded.uncoalesced_instructions,
    dram_reads = dram_reads + excluded.dram_reads,
    dram_writes = dram_writes + excluded.dram_writes,
    stops = stops + excluded.stops,
    stops_ns = stops_ns + excluded.stops_ns,
    slices = slices + excluded.slices,
    slices_ns = slices_ns + excluded.slices_ns,
    updated = excluded.updated
RETURNING id)";

// Behind the name of the table.
constexpr char kMergeTimes[] = R"( (profile, sms, ctas_per_sm, launches, blocks, input_bytes, nanoseconds)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    launches = launches + excluded.launches,
    blocks = blocks + excluded.blocks,
    input_bytes = input_bytes + excluded.input_bytes,
    nanoseconds = nanoseconds + excluded.nanoseconds)";

constexpr char kMergeBeside[] =
    R"( (profile, kernel, image, block_x, block_y, block_z, grid_class, ctas_per_sm,
 other_ctas_per_sm, windows, blocks, nanoseconds)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    windows = windows + excluded.windows,
    blocks = blocks + excluded.blocks,
    nanoseconds = nanoseconds + excluded.nanoseconds)";

constexpr char kSetCoefficient[] =
    "INSERT OR REPLACE INTO coefficient (profile, name, value) VALUES (?, ?, ?)";

using TimesOf = std::map<Placement, Times> Profile::*;
using BesideOf = std::map<Beside, SharedTime> Profile::*;

void read_times(Database& database, int64_t id, const std::string& table, TimesOf times, Profile& profile) {
    Statement row =
        database.prepare("SELECT sms, ctas_per_sm, launches, blocks, input_bytes, nanoseconds FROM " + table +
                         " WHERE profile = ?");
    row.bind(id);
    while (row.step()) {
        (profile.*times)[{row.integer(0), row.integer(1)}] = {row.integer(2), row.integer(3), row.integer(4),
                                                              row.integer(5)};
    }
}

void merge_times(Database& database, int64_t id, const std::string& table,
                 const std::map<Placement, Times>& news) {
    Statement times = database.prepare("INSERT INTO " + table + kMergeTimes);
    for (const auto& [place, sums] : news) {
        times.bind(id, place.sms, place.ctas_per_sm, sums.launches, sums.blocks, sums.input_bytes,
                   sums.nanoseconds);
        times.run();
    }
}

void merge_beside(Database& database, int64_t id, const std::string& table,
                  const std::map<Beside, SharedTime>& news) {
    Statement beside = database.prepare("INSERT INTO " + table + kMergeBeside);
    for (const auto& [company, sums] : news) {
        const Key& other = company.other;
        beside.bind(id, other.kernel, other.image, other.block[0], other.block[1], other.block[2],
                    other.grid_class, company.ctas_per_sm, company.other_ctas_per_sm, sums.windows,
                    sums.blocks, sums.nanoseconds);
        beside.run();
    }
}

void read_beside(Database& database, int64_t id, const std::string& table, BesideOf beside,
                 Profile& profile) {
    Statement row = database.prepare(
        "SELECT kernel, image, block_x, block_y, block_z, grid_class, ctas_per_sm, other_ctas_per_sm, "
        "windows, blocks, nanoseconds FROM " +
        table + " WHERE profile = ?");
    row.bind(id);
    while (row.step()) {
        const Key other{row.text(0),
                        row.text(1),
                        {row.integer(2), row.integer(3), row.integer(4)},
                        row.integer(5),
                        profile.key.device};
        (profile.*beside)[{other, row.integer(6), row.integer(7)}] = {row.integer(8), row.integer(9),
                                                                      row.integer(10)};
    }
}

// The profile that `row` stands at.
Profile read_row(Database& database, const Statement& row) {
    Profile profile;
    profile.key = {row.text(1),
                   row.text(2),
                   {row.integer(3), row.integer(4), row.integer(5)},
                   row.integer(6),
                   row.text(7)};
    if (!row.is_null(8)) {
        profile.resources =
            Resources{row.integer(8), row.integer(9), row.integer(10), row.integer(11), row.integer(12)};
    }
    profile.counters = {row.integer(13), row.integer(14), row.integer(15), row.integer(16),
                        row.integer(17), row.integer(18), row.integer(19)};
    profile.preemption = {row.integer(20), row.integer(21)};
    profile.slicing = {row.integer(22), row.integer(23)};

    read_times(database, row.integer(0), "times", &Profile::times, profile);
    read_times(database, row.integer(0), "learnt_times", &Profile::learnt_times, profile);
    read_beside(database, row.integer(0), "beside", &Profile::beside, profile);
    read_beside(database, row.integer(0), "learnt_beside", &Profile::learnt_beside, profile);
    Statement coefficients = database.prepare("SELECT name, value FROM coefficient WHERE profile = ?");
    coefficients.bind(row.integer(0));
    while (coefficients.step()) profile.coefficients[coefficients.text(0)] = coefficients.real(1);
    return profile;
}

int64_t merge_main_row(Database& database, const Profile& news) {
    const auto known = [&](int64_t Resources::* part) -> std::optional<int64_t> {
        if (!news.resources) return std::nullopt;
        return *news.resources.*part;
    };
    Statement merge = database.prepare(kMerge);
    const auto& [kernel, image, block, grid_class, device] = news.key;
    merge.bind(kernel, image, block[0], block[1], block[2], grid_class, device);
    merge.bind(known(&Resources::registers), known(&Resources::local_bytes),
               known(&Resources::static_shared_bytes), known(&Resources::dynamic_shared_bytes),
               known(&Resources::most_ctas_per_sm));
    const models::Counters& counters = news.counters;
    merge.bind(counters.blocks, counters.nanoseconds, counters.instructions, counters.memory_instructions,
               counters.uncoalesced_instructions, counters.dram_reads, counters.dram_writes);
    merge.bind(news.preemption.stops, news.preemption.nanoseconds);
    merge.bind(news.slicing.slices, news.slicing.nanoseconds);
    merge.step();
    const int64_t id = merge.integer(0);
    merge.run();
    return id;
}

}  // namespace

std::optional<Profile> find_row(Database& database, const Key& key) {
    Statement row =
        database.prepare(std::string(kSelect) +
                         "kernel = ? AND image = ? AND device = ? AND block_x = ? AND block_y = ? "
                         "AND block_z = ? AND grid_class = ?");
    row.bind(key.kernel, key.image, key.device, key.block[0], key.block[1], key.block[2], key.grid_class);
    if (!row.step()) return std::nullopt;
    return read_row(database, row);
}

void merge_row(Database& database, const Profile& news) {
    const int64_t id = merge_main_row(database, news);
    merge_times(database, id, "times", news.times);
    merge_times(database, id, "learnt_times", news.learnt_times);
    merge_beside(database, id, "beside", news.beside);
    merge_beside(database, id, "learnt_beside", news.learnt_beside);
    Statement coefficient = database.prepare(kSetCoefficient);
    for (const auto& [name, value] : news.coefficients) {
        coefficient.bind(id, name, value);
        coefficient.run();
    }
}

std::vector<Profile> list_rows(Database& database, const Which& which) {
    Statement row = database.prepare(std::string(kSelect) + kWhich + kOrder);
    row.bind(which.kernel, which.image, which.device);
    std::vector<Profile> profiles;
    while (row.step()) profiles.push_back(read_row(database, row));
    return profiles;
}

int64_t delete_rows(Database& database, const Which& which) {
    Statement row = database.prepare(std::string("DELETE FROM profile WHERE") + kWhich);
    row.bind(which.kernel, which.image, which.device);
    row.run();
    return database.changes();
}

}  // namespace smt::profiler
