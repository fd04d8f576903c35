// SQLite, as much of it as the store needs. Inside of this folder errors are exceptions; store.cpp ends them.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace smt::profiler {

class DatabaseError : public std::runtime_error {
public:
    DatabaseError(const std::string& text, bool damaged) : std::runtime_error(text), damaged_(damaged) {}
    bool damaged() const { return damaged_; }  // the file is not what SQLite wrote

private:
    bool damaged_;
};

// A statement that is being run. Parameters are bound in their order; then step() goes from row to row.
class Statement {
public:
    Statement(sqlite3* database, std::string_view sql);
    ~Statement();
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    template <class... Values>
    Statement& bind(const Values&... values) {
        (bind_next(values), ...);
        return *this;
    }
    bool step();  // false: there is no further row
    void run();   // to the end; then it may be bound anew

    int columns() const;
    std::string name(int column) const;
    bool is_null(int column) const;
    int64_t integer(int column) const;
    double real(int column) const;
    std::string text(int column) const;

private:
    void bind_next(int64_t value);
    void bind_next(double value);
    void bind_next(const std::string& value);
    void bind_next(const std::optional<int64_t>& value);
    void check(int code) const;

    sqlite3* database_;
    sqlite3_stmt* statement_ = nullptr;
    int bound_ = 0;
};

class Database {
public:
    // Makes the file if there is none. One thread at a time.
    explicit Database(const std::string& path);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    void run(const std::string& sql);  // any number of statements; rows are dropped
    Statement prepare(std::string_view sql) { return Statement(database_, sql); }
    // Of a statement that has one row and one column.
    int64_t integer(std::string_view sql);
    int64_t changes() const;  // rows of the last statement
    void roll_back() noexcept;
    // Whether the file is no longer where it was opened, or another is there.
    bool is_gone() const;

private:
    sqlite3* database_ = nullptr;
};

// Undone unless it comes to commit().
class Transaction {
public:
    enum class Kind { kRead, kWrite };
    Transaction(Database& database, Kind kind);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit();

private:
    Database& database_;
    bool open_ = true;
};

}  // namespace smt::profiler
