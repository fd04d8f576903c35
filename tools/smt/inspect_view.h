// What smt inspect prints, apart from the command so that tests can read it.
#pragma once

#include <string>

#include "runtime/image/survey.h"

namespace smt::tools {

std::string inspect_text(const std::string& path, int architecture, const image::Survey& survey);
std::string inspect_json(const std::string& path, int architecture, const image::Survey& survey);

}  // namespace smt::tools
