// The tables, and how a file of any older version becomes one of this.
//
// PRAGMA user_version of the file is its version: how many steps it has seen. Version 0 is an empty file,
// which is what SQLite makes; step n leads from version n to n + 1, and steps that were once released are
// never changed: a new one is added. PRAGMA application_id tells our files from others'.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>

#include "profiler/store/database.h"

namespace smt::profiler {

struct Schema {
    int64_t application = 0;
    std::span<const char* const> steps;
};

extern const Schema kProfiles;

// The file is not for us, and is left as it is.
class Refusal : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// All steps that the file has not seen, or none of them if one fails. Throws Refusal for a file of a later
// version, and for one that has tables and is of another application.
void bring_up_to_date(Database& database, const Schema& schema);

}  // namespace smt::profiler
