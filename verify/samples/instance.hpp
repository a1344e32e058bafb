// Generates small graphs that match a rule from its pattern. Types and attributes that the pattern
// and the ops' signatures leave free are drawn at random; candidates that the matcher rejects are
// discarded.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "rewriter/matcher/matcher.hpp"
#include "verify/samples/draw.hpp"

namespace pw {

struct Instance {
  Graph graph;
  Match match;
  Env params;
  std::uint64_t hash = 0;  ///< over structure and types
};

struct InstanceOptions {
  std::size_t wanted = 6;  ///< distinct instances in structure or types
  std::size_t attempts = 20000;
  std::size_t refusals = 200;  ///< limit of matched graphs that `refuses` rejects
  std::uint64_t seed = 1;
  std::int64_t world = 1;  ///< value of every `world`, and of every param used as one
  /// A pattern variable and its fixed value.
  std::optional<std::pair<std::string, std::int64_t>> fixed;
  std::optional<Profile> profile;  ///< requested features; random if absent
  /// An additional test for well-typed, matched graphs; returns the reason for a rejection.
  std::function<std::optional<std::string>(const Instance&)> refuses;
};

struct Instances {
  std::vector<Instance> found;
  std::size_t attempts = 0, built = 0;  ///< graphs tried, and those well typed
  std::string why;  ///< if none was found: the last rejection of a well-typed graph, or else the
                    ///< last type error
};
Instances make_instances(const RuleSet& rules, RuleId rule, const Env& params,
                         const InstanceOptions& options = {});

}  // namespace pw
