// See json.h.
#include "tools/smt/json.h"

#include <nlohmann/json.hpp>

namespace smt::tools {

std::string json_string(std::string_view text) {
    using Json = nlohmann::json;
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace smt::tools
