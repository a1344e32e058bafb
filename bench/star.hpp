// One value with many users, as positions and tied weights have: what every mutation costs a user.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace pw::bench {

/// (mutation, seconds for one user), medians of `runs` runs.
std::vector<std::pair<std::string, double>> run_star(std::size_t users, int runs);

}  // namespace pw::bench
