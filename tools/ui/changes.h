// Changes of a server that the page may ask for: what smt policy set, smt set, smt suspend and smt resume do.
//
//   policy  {"policy":NAME}
//   memory  {"tenant":NAME, "limit":"4G"}     "all": the device's
//   terms   {"tenant":NAME, "priority":"high", "weight":"2"}     one of them, or both
//   suspend, resume  {"tenant":NAME}
#pragma once

#include <string>

#include "tools/http/endpoint.h"

namespace smt::tools::ui {

// At the server of `key`. `wish`: JSON. The answer's text is one line for the person that asked.
http::Answer carry_out(const std::string& key, const std::string& what, const std::string& wish);

}  // namespace smt::tools::ui
