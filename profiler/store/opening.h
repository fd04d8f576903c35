// Opens the file: looks whether it is whole, sets it aside if it is not, and brings it up to date.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "profiler/store/database.h"
#include "profiler/store/schema.h"

namespace smt::profiler {

// One process at a time, by a lock on PATH.lock: else of two that find a file damaged, the later would set
// the earlier's new file aside. Throws DatabaseError, Refusal, or std::system_error for folders and the lock.
std::unique_ptr<Database> open_database(const std::string& path, const Schema& schema,
                                        const std::function<void(const std::string& line)>& say);

}  // namespace smt::profiler
