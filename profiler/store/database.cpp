#include "profiler/store/database.h"

#include <sqlite3.h>

namespace smt::profiler {

namespace {

// How long to wait for another process's write, which takes less than a millisecond. SQLite looks for its
// turn from time to time, and so misses those of a process that writes all the time.
constexpr int kBusyMs = 10'000;

[[noreturn]] void fail(sqlite3* database, int code) {
    const int primary = code & 0xff;
    throw DatabaseError(database ? sqlite3_errmsg(database) : sqlite3_errstr(code),
                        primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB);
}

}  // namespace

Statement::Statement(sqlite3* database, std::string_view sql) : database_(database) {
    check(sqlite3_prepare_v2(database_, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr));
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::check(int code) const {
    if (code != SQLITE_OK) fail(database_, code);
}

void Statement::bind_next(int64_t value) { check(sqlite3_bind_int64(statement_, ++bound_, value)); }

void Statement::bind_next(double value) { check(sqlite3_bind_double(statement_, ++bound_, value)); }

void Statement::bind_next(const std::string& value) {
    check(
        sqlite3_bind_text64(statement_, ++bound_, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Statement::bind_next(const std::optional<int64_t>& value) {
    if (value) return bind_next(*value);
    check(sqlite3_bind_null(statement_, ++bound_));
}

bool Statement::step() {
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) fail(database_, code);
    return code == SQLITE_ROW;
}

void Statement::run() {
    while (step()) {
    }
    check(sqlite3_reset(statement_));
    bound_ = 0;
}

int Statement::columns() const { return sqlite3_column_count(statement_); }

std::string Statement::name(int column) const { return sqlite3_column_name(statement_, column); }

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }

std::string Statement::text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column)))
                 : std::string();
}

Database::Database(const std::string& path) {
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int code = sqlite3_open_v2(path.c_str(), &database_, flags, nullptr);
    if (code != SQLITE_OK) {
        const std::string text = database_ ? sqlite3_errmsg(database_) : sqlite3_errstr(code);
        sqlite3_close(database_);
        throw DatabaseError(text, false);
    }
    sqlite3_busy_timeout(database_, kBusyMs);
}

Database::~Database() { sqlite3_close(database_); }

void Database::run(const std::string& sql) {
    const int code = sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) fail(database_, code);
}

int64_t Database::integer(std::string_view sql) {
    Statement statement = prepare(sql);
    return statement.step() ? statement.integer(0) : 0;
}

int64_t Database::changes() const { return sqlite3_changes64(database_); }

bool Database::is_gone() const {
    int gone = 0;
    return sqlite3_file_control(database_, "main", SQLITE_FCNTL_HAS_MOVED, &gone) == SQLITE_OK && gone != 0;
}

void Database::roll_back() noexcept { sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr); }

Transaction::Transaction(Database& database, Kind kind) : database_(database) {
    database_.run(kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
    if (open_) database_.roll_back();
}

void Transaction::commit() {
    database_.run("COMMIT");
    open_ = false;
}

}  // namespace smt::profiler
