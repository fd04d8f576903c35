// What the page shows: a server that runs, or a journal that was kept. Any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tools/http/endpoint.h"

namespace smt::tools::ui {

class Source {
public:
    virtual ~Source() = default;
    // What does not change while it is shown, as JSON.
    virtual std::string about() = 0;
    // A frame, as JSON (state.h). `query`: from, to, over in ns; live it ends with what is newest.
    virtual std::string state(const http::Fields& query) = 0;
    // Carries a change out (changes.h).
    virtual http::Answer change(const std::string& what, const std::string& wish) = 0;
};

// key: of a server; nothing: the one that started last, also one that starts later.
std::unique_ptr<Source> make_live(const std::optional<std::string>& key);
// Throws Failure: it is no journal.
std::unique_ptr<Source> make_recording(const std::string& path);

}  // namespace smt::tools::ui
