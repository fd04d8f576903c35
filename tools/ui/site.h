// What the page's server answers:
//
//   GET  / and what it loads                          the page (page/)
//   GET  /about, /state?from=NS&to=NS&over=NS         JSON (source.h)
//   POST /policy, /memory, /terms, /suspend, /resume  changes (changes.h); one line of text
//
// Any thread.
#pragma once

#include <memory>
#include <string>

#include "tools/ui/guard.h"
#include "tools/ui/source.h"

namespace smt::tools::ui {

inline constexpr size_t kMostBody = 4096;  // of a change

class Site {
public:
    Site(std::unique_ptr<Source> source, std::string token)
        : source_(std::move(source)), guard_(std::move(token)) {}
    http::Answer answer(const http::Request& request);

private:
    http::Answer answer_known(const http::Request& request);

    const std::unique_ptr<Source> source_;
    const Guard guard_;
};

}  // namespace smt::tools::ui
