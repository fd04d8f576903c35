// Profiles as rows: SQL, and nothing else. All of it throws DatabaseError; transactions are the caller's.
#pragma once

#include <optional>
#include <vector>

#include "profiler/store/database.h"
#include "profiler/store/store.h"

namespace smt::profiler {

std::optional<Profile> find_row(Database& database, const Key& key);
void merge_row(Database& database, const Profile& news);
std::vector<Profile> list_rows(Database& database, const Which& which);
int64_t delete_rows(Database& database, const Which& which);

std::string json_of(Database& database, const Which& which);
std::string csv_of(Database& database, const Which& which);

// A condition on the columns kernel, image and device, to which the three texts of Which are bound; and the
// order of keys.
inline constexpr char kWhich[] =
    " (?1 = '' OR kernel = ?1) AND (?2 = '' OR image = ?2) AND (?3 = '' OR device = ?3) ";
inline constexpr char kOrder[] = "ORDER BY kernel, image, device, block_x, block_y, block_z, grid_class";

}  // namespace smt::profiler
