#include "profiler/store/schema.h"

#include <fmt/format.h>

#include <algorithm>

namespace smt::profiler {

namespace {

constexpr char kFirst[] = R"(
CREATE TABLE profile (
    id INTEGER PRIMARY KEY,
    kernel TEXT NOT NULL,
    image TEXT NOT NULL,
    block_x INTEGER NOT NULL,
    block_y INTEGER NOT NULL,
    block_z INTEGER NOT NULL,
    grid_class INTEGER NOT NULL,
    device TEXT NOT NULL,
    -- of a block; all of them NULL: not known
    registers INTEGER,
    local_bytes INTEGER,
    static_shared_bytes INTEGER,
    dynamic_shared_bytes INTEGER,
    most_ctas_per_sm INTEGER,
    -- what was counted while counted_blocks ran for counted_ns
    counted_blocks INTEGER NOT NULL,
    counted_ns INTEGER NOT NULL,
    instructions INTEGER NOT NULL,
    memory_instructions INTEGER NOT NULL,
    uncoalesced_instructions INTEGER NOT NULL,
    dram_reads INTEGER NOT NULL,
    dram_writes INTEGER NOT NULL,
    stops INTEGER NOT NULL,
    stops_ns INTEGER NOT NULL,
    updated TEXT NOT NULL,
    UNIQUE (kernel, image, device, block_x, block_y, block_z, grid_class)
) STRICT;

CREATE TABLE times (
    profile INTEGER NOT NULL REFERENCES profile ON DELETE CASCADE,
    sms INTEGER NOT NULL,
    ctas_per_sm INTEGER NOT NULL,
    launches INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    input_bytes INTEGER NOT NULL,
    nanoseconds INTEGER NOT NULL,
    PRIMARY KEY (profile, sms, ctas_per_sm)
) STRICT, WITHOUT ROWID;

CREATE TABLE coefficient (
    profile INTEGER NOT NULL REFERENCES profile ON DELETE CASCADE,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (profile, name)
) STRICT, WITHOUT ROWID;

CREATE VIEW overview AS
SELECT kernel, image, device, block_x || 'x' || block_y || 'x' || block_z AS block, grid_class,
       registers, static_shared_bytes + dynamic_shared_bytes AS shared_bytes, most_ctas_per_sm,
       sms, ctas_per_sm, launches, blocks, input_bytes, nanoseconds,
       nanoseconds / launches AS ns_per_launch, round(1.0 * nanoseconds / blocks, 1) AS ns_per_block,
       stops, stops_ns / stops AS ns_per_stop, updated
FROM profile LEFT JOIN times ON times.profile = profile.id
ORDER BY kernel, image, device, block_x, block_y, block_z, grid_class, sms, ctas_per_sm;
)";

// Pairs of kernels that ran side by side.
constexpr char kSecond[] = R"(
CREATE TABLE beside (
    profile INTEGER NOT NULL REFERENCES profile ON DELETE CASCADE,
    -- the other kernel; its device is the profile's
    kernel TEXT NOT NULL,
    image TEXT NOT NULL,
    block_x INTEGER NOT NULL,
    block_y INTEGER NOT NULL,
    block_z INTEGER NOT NULL,
    grid_class INTEGER NOT NULL,
    -- of the profile's kernel, and of the other one
    ctas_per_sm INTEGER NOT NULL,
    other_ctas_per_sm INTEGER NOT NULL,
    -- what was done of the profile's kernel
    windows INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    nanoseconds INTEGER NOT NULL,
    PRIMARY KEY (profile, kernel, image, block_x, block_y, block_z, grid_class, ctas_per_sm,
                 other_ctas_per_sm)
) STRICT, WITHOUT ROWID;
)";

// Until then each of the two was counted over a stretch of time of its own, the one that got less done over
// the time in which it did.
constexpr char kThird[] = "DELETE FROM beside;";

// What slices cost.
constexpr char kFourth[] = R"(
ALTER TABLE profile ADD COLUMN slices INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN slices_ns INTEGER NOT NULL DEFAULT 0;
)";

// What servers learn while programs run, beside what was measured.
constexpr char kFifth[] = R"(
CREATE TABLE learnt_times (
    profile INTEGER NOT NULL REFERENCES profile ON DELETE CASCADE,
    sms INTEGER NOT NULL,
    ctas_per_sm INTEGER NOT NULL,
    launches INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    input_bytes INTEGER NOT NULL,
    nanoseconds INTEGER NOT NULL,
    PRIMARY KEY (profile, sms, ctas_per_sm)
) STRICT, WITHOUT ROWID;

CREATE TABLE learnt_beside (
    profile INTEGER NOT NULL REFERENCES profile ON DELETE CASCADE,
    kernel TEXT NOT NULL,
    image TEXT NOT NULL,
    block_x INTEGER NOT NULL,
    block_y INTEGER NOT NULL,
    block_z INTEGER NOT NULL,
    grid_class INTEGER NOT NULL,
    ctas_per_sm INTEGER NOT NULL,
    other_ctas_per_sm INTEGER NOT NULL,
    windows INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    nanoseconds INTEGER NOT NULL,
    PRIMARY KEY (profile, kernel, image, block_x, block_y, block_z, grid_class, ctas_per_sm,
                 other_ctas_per_sm)
) STRICT, WITHOUT ROWID;
)";

constexpr const char* kSteps[] = {kFirst, kSecond, kThird, kFourth, kFifth};

}  // namespace

const Schema kProfiles{0x736d7470, kSteps};  // "smtp"

void bring_up_to_date(Database& database, const Schema& schema) {
    const auto ours = static_cast<int64_t>(schema.steps.size());
    Transaction transaction(database, Transaction::Kind::kWrite);
    const int64_t application = database.integer("PRAGMA application_id");
    if (application != schema.application && database.integer("SELECT count(*) FROM sqlite_schema") > 0)
        throw Refusal("it is a database of another program");
    const int64_t version = database.integer("PRAGMA user_version");
    if (version > ours)
        throw Refusal(
            fmt::format("it is of version {}, and this program knows version {} and older", version, ours));
    if (version == ours) return;
    for (int64_t step = std::max<int64_t>(version, 0); step < ours; ++step) database.run(schema.steps[step]);
    database.run(fmt::format("PRAGMA application_id = {}", schema.application));
    database.run(fmt::format("PRAGMA user_version = {}", ours));
    transaction.commit();
}

}  // namespace smt::profiler
