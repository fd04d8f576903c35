// The table of settings as a page for people: docs/settings.md.
#pragma once

#include <string>

namespace smt::settings {

std::string document();

}  // namespace smt::settings
