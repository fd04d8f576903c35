// What the compile worker made, on disk: one file for each key, named after it.
//
//   file := magic, SHA-256 of the payload, payload
//
// The key is a hash of everything that the payload depends on, so a file never goes stale; it is only
// evicted, the one least recently read first. A file is written under another name and renamed, so that
// several servers may share the folder, and its checksum is looked at whenever it is read: what does not
// fit is removed, said once for each file, and counts as absent. Nothing is read that another user could have
// written: folder and file belong to this user, and no other user has write permission.
//
// Nothing here fails a caller. A folder that is not ours or cannot be written to, and a full disk, mean
// that nothing more is stored, said once. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace smt::runtime::jit {

class Cache {
public:
    using Say = std::function<void(const std::string& line)>;  // any thread

    // `folder` is made, with mode 0700, when something is stored. An empty one, or limit 0: no cache.
    Cache(std::string folder, uint64_t limit_bytes, Say say);

    // Keys are lower-case hex, 64 characters.
    std::optional<std::string> load(const std::string& key);
    void store(const std::string& key, std::string_view payload);

    struct File {
        std::string key;
        uint64_t bytes = 0;
        int64_t read_ns = 0;  // when it was last read or written, of the epoch
    };
    std::vector<File> list() const;  // the one read last comes first
    uint64_t clear();                // bytes removed
    const std::string& folder() const { return folder_; }

private:
    bool open_folder();
    bool trusted();
    bool write_file(std::string& path, std::string_view payload);
    void evict();
    void give_up(const std::string& what);
    std::string path_of(const std::string& key) const { return folder_ + "/" + key; }

    const std::string folder_;
    const uint64_t limit_;
    const Say say_;
    std::atomic<bool> off_{false};
    std::atomic<bool> foreign_{false};  // that has been said
};

}  // namespace smt::runtime::jit
