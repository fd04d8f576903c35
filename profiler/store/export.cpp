#include <string>
#include <string_view>

#include "profiler/store/rows.h"

namespace smt::profiler {

namespace {

// An object for each profile; SQLite quotes and prints the numbers.
constexpr char kJson[] = R"(
SELECT json_object(
    'kernel', kernel, 'image', image, 'device', device,
    'block', json_array(block_x, block_y, block_z), 'grid_class', grid_class,
    'resources', json(CASE WHEN registers IS NOT NULL THEN json_object(
        'registers', registers, 'local_bytes', local_bytes, 'static_shared_bytes', static_shared_bytes,
        'dynamic_shared_bytes', dynamic_shared_bytes, 'most_ctas_per_sm', most_ctas_per_sm) END),
    'times', json((SELECT json_group_array(json_object(
        'sms', sms, 'ctas_per_sm', ctas_per_sm, 'launches', launches, 'blocks', blocks,
        'input_bytes', input_bytes, 'nanoseconds', nanoseconds))
        FROM (SELECT * FROM times WHERE profile = id ORDER BY sms, ctas_per_sm))),
    'beside', json((SELECT json_group_array(json_object(
        'kernel', kernel, 'image', image, 'block', json_array(block_x, block_y, block_z),
        'grid_class', grid_class, 'ctas_per_sm', ctas_per_sm, 'other_ctas_per_sm', other_ctas_per_sm,
        'windows', windows, 'blocks', blocks, 'nanoseconds', nanoseconds))
        FROM (SELECT * FROM beside WHERE profile = id ORDER BY kernel, image, block_x, block_y, block_z,
              grid_class, ctas_per_sm, other_ctas_per_sm))),
    'learnt_times', json((SELECT json_group_array(json_object(
        'sms', sms, 'ctas_per_sm', ctas_per_sm, 'launches', launches, 'blocks', blocks,
        'nanoseconds', nanoseconds))
        FROM (SELECT * FROM learnt_times WHERE profile = id ORDER BY sms, ctas_per_sm))),
    'learnt_beside', json((SELECT json_group_array(json_object(
        'kernel', kernel, 'image', image, 'block', json_array(block_x, block_y, block_z),
        'grid_class', grid_class, 'ctas_per_sm', ctas_per_sm, 'other_ctas_per_sm', other_ctas_per_sm,
        'windows', windows, 'blocks', blocks, 'nanoseconds', nanoseconds))
        FROM (SELECT * FROM learnt_beside WHERE profile = id ORDER BY kernel, image, block_x, block_y,
              block_z, grid_class, ctas_per_sm, other_ctas_per_sm))),
    'counters', json_object(
        'blocks', counted_blocks, 'nanoseconds', counted_ns, 'instructions', instructions,
        'memory_instructions', memory_instructions, 'uncoalesced_instructions', uncoalesced_instructions,
        'dram_reads', dram_reads, 'dram_writes', dram_writes),
    'preemption', json_object('stops', stops, 'nanoseconds', stops_ns),
    'slicing', json_object('slices', slices, 'nanoseconds', slices_ns),
    'coefficients', json((SELECT json_group_object(name, value)
        FROM (SELECT * FROM coefficient WHERE profile = id ORDER BY name))),
    'updated', updated)
FROM profile WHERE)";

std::string csv_field(std::string text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    for (size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
    return '"' + text + '"';
}

}  // namespace

std::string json_of(Database& database, const Which& which) {
    Statement row = database.prepare(std::string(kJson) + kWhich + kOrder);
    row.bind(which.kernel, which.image, which.device);
    std::string text = "[";
    for (std::string_view separator = "\n"; row.step(); separator = ",\n")
        text.append(separator).append(row.text(0));
    return text + "\n]\n";
}

std::string csv_of(Database& database, const Which& which) {
    Statement row = database.prepare(std::string("SELECT * FROM overview WHERE") + kWhich +
                                     "ORDER BY kernel, image, device, block, grid_class, sms, ctas_per_sm");
    row.bind(which.kernel, which.image, which.device);
    std::string text;
    const auto end_field = [&](int column) { text += column + 1 < row.columns() ? "," : "\r\n"; };
    for (int column = 0; column < row.columns(); end_field(column++)) text += csv_field(row.name(column));
    while (row.step()) {
        for (int column = 0; column < row.columns(); end_field(column++)) text += csv_field(row.text(column));
    }
    return text;
}

}  // namespace smt::profiler
