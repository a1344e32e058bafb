// The member `symbols` of a graph.json.
#pragma once

#include <map>
#include <string>

#include "graph/dim.hpp"
#include "graph/text/json_checks.hpp"

namespace pw {

void declare_symbols(const json::Tree& symbols, const json::Pointer& list, Facts& facts,
                     json::Checks& check);
/// Reports the symbols that are used, each with its first place, and not declared.
void check_symbols(const std::map<std::string, std::string>& used, const Facts& facts,
                   json::Checks& check);

}  // namespace pw
