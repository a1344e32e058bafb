// The members `symbols` and `conditions` of a graph.json.
#pragma once

#include <map>
#include <string>

#include "graph/dim.hpp"
#include "graph/text/attribute_json.hpp"
#include "graph/text/json_checks.hpp"

namespace pw {

void declare_symbols(const json::Tree& symbols, const json::Pointer& list, Facts& facts,
                     json::Checks& check);
/// Reads the member `conditions`.
void read_conditions(const json::Tree& list, const json::Pointer& pointer, AttributeReader& dims,
                     Facts& facts, json::Checks& check);
/// Reports the symbols that are used, each with its first place, and not declared.
void check_symbols(const std::map<std::string, std::string>& used, const Facts& facts,
                   json::Checks& check);

}  // namespace pw
