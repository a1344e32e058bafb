// One value with many users, as positions and tied weights have: what every mutation costs a user.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pw::bench {

/// (mutation, seconds for one user), medians of `runs` runs.
std::vector<std::pair<std::string, double>> run_star(std::size_t users, int runs);

/// Seconds for one user of a rule that takes all products of one value at once (`many`) and makes
/// one of them; the median. Nothing where the language has no such rules.
std::optional<double> run_many(std::size_t users, int runs);

}  // namespace pw::bench
