#include "profiler/store/store.h"

#include <cmath>
#include <filesystem>
#include <mutex>
#include <utility>

#include "profiler/store/opening.h"
#include "profiler/store/rows.h"

namespace smt::profiler {

namespace {

// What cannot be kept in a way that people and programs can read.
std::optional<Problem> flaw_of(const Profile& profile) {
    const auto has_nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
    const auto is_flawed = [&](const Key& key) {
        return has_nul(key.kernel) || has_nul(key.image) || has_nul(key.device);
    };
    if (is_flawed(profile.key)) return Problem{"a profile's kernel, image and device are texts without NUL"};
    for (const auto& [company, sums] : profile.beside) {
        if (is_flawed(company.other)) return Problem{"the kernel beside a profile's has texts without NUL"};
        if (company.other.device != profile.key.device)
            return Problem{"the kernel beside a profile's is of the same device"};
    }
    for (const auto& [name, value] : profile.coefficients) {
        if (has_nul(name)) return Problem{"a coefficient's name is a text without NUL"};
        if (!std::isfinite(value)) return Problem{"the coefficient " + name + " is not a finite number"};
    }
    return std::nullopt;
}

}  // namespace

struct Store::Impl {
    // Work is done in a transaction and committed. A file that turns out to be damaged is opened anew, which
    // sets it aside, and the work is done on the new one.
    template <class Work>
    auto attempt(Transaction::Kind kind, Work work) -> Result<decltype(work(std::declval<Database&>()))> {
        try {
            std::lock_guard lock(mutex);
            for (bool again = false;; again = true) {
                try {
                    Database& open = connection();
                    Transaction transaction(open, kind);
                    auto result = work(open);
                    transaction.commit();
                    return result;
                } catch (const DatabaseError& error) {
                    if (!error.damaged() || again) throw;
                }
                database.reset();
            }
        } catch (const std::exception& error) {
            return Problem{path + ": " + error.what()};
        }
    }

    Database& connection() {
        if (!refusal.empty()) throw Refusal(refusal);
        if (database && database->is_gone()) database.reset();
        try {
            if (!database) database = open_database(path, kProfiles, say), ++openings;
        } catch (const Refusal& error) {
            refusal = error.what();
            throw;
        }
        return *database;
    }

    std::string path;
    Say say;
    std::mutex mutex;
    std::unique_ptr<Database> database;
    int64_t openings = 0;  // SQLite counts versions for each
    std::string refusal;   // not empty: the file is not for us
};

Store::Store(std::string path, Say say) : impl_(std::make_unique<Impl>()) {
    std::error_code error;  // then it stays as it is
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    impl_->path = error ? std::move(path) : absolute.string();
    impl_->say = std::move(say);
}

Store::~Store() = default;

Result<std::optional<Profile>> Store::find(const Key& key) {
    return impl_->attempt(Transaction::Kind::kRead,
                          [&](Database& database) { return find_row(database, key); });
}

Result<int64_t> Store::version() {
    return impl_->attempt(Transaction::Kind::kRead, [&](Database& database) {
        return impl_->openings << 32 | database.integer("PRAGMA data_version");
    });
}

std::optional<Problem> Store::record(const Profile& news) {
    if (std::optional<Problem> flaw = flaw_of(news)) return flaw;
    const auto result = impl_->attempt(Transaction::Kind::kWrite, [&](Database& database) {
        merge_row(database, news);
        return true;
    });
    if (const Problem* problem = std::get_if<Problem>(&result)) return *problem;
    return std::nullopt;
}

Result<std::vector<Profile>> Store::list(const Which& which) {
    return impl_->attempt(Transaction::Kind::kRead,
                          [&](Database& database) { return list_rows(database, which); });
}

Result<int64_t> Store::forget(const Which& which) {
    return impl_->attempt(Transaction::Kind::kWrite,
                          [&](Database& database) { return delete_rows(database, which); });
}

Result<std::string> Store::export_json(const Which& which) {
    return impl_->attempt(Transaction::Kind::kRead,
                          [&](Database& database) { return json_of(database, which); });
}

Result<std::string> Store::export_csv(const Which& which) {
    return impl_->attempt(Transaction::Kind::kRead,
                          [&](Database& database) { return csv_of(database, which); });
}

}  // namespace smt::profiler
