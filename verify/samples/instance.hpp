// Small graphs that a rule matches, made from its pattern: types and attributes are drawn at random
// where the pattern and the ops' signatures leave them free, and what the matcher accepts is kept.
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
  std::uint64_t hash = 0;  ///< of structure and types
};

struct InstanceOptions {
  std::size_t wanted = 6;  ///< instances that differ in structure or types
  std::size_t attempts = 20000;
  std::size_t refusals = 200;  ///< of graphs that are matched, after which there is no hope
  std::uint64_t seed = 1;
  std::int64_t world = 1;  ///< what every `world` is, and every param that a `world` is written as
  /// A variable of the pattern, and the value it has.
  std::optional<std::pair<std::string, std::int64_t>> fixed;
  std::optional<Profile> profile;  ///< what they are like; at random without
  /// What a well-typed graph that is matched must meet besides; says why it does not.
  std::function<std::optional<std::string>(const Instance&)> refuses;
};

struct Instances {
  std::vector<Instance> found;
  std::size_t attempts = 0, built = 0;  ///< graphs tried; of these, well typed
  std::string why;  ///< when none is found: the last rejection of a well-typed graph, or the last
                    ///< type error
};
Instances make_instances(const RuleSet& rules, RuleId rule, const Env& params,
                         const InstanceOptions& options = {});

}  // namespace pw
