// A file's bytes, mapped: what is not looked at is not read.
#pragma once

#include <string>
#include <string_view>

namespace smt::tools {

class MappedFile {
public:
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    // Nothing, if it cannot be read; problem() says why.
    std::string_view bytes() const { return bytes_; }
    const std::string& problem() const { return problem_; }

private:
    std::string_view bytes_;
    std::string problem_;
};

}  // namespace smt::tools
