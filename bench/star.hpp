// One value with many users, such as positions or tied weights: the cost of each mutation per user.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pw::bench {

/// Returns pairs of mutation and seconds per user, as medians of `runs` runs.
std::vector<std::pair<std::string, double>> run_star(std::size_t users, int runs);

/// Returns the median seconds per user of a rule that merges all products of one value (`many`);
/// nothing if the language lacks such rules.
std::optional<double> run_many(std::size_t users, int runs);

}  // namespace pw::bench
