// Rules that nobody wrote. Small graphs are enumerated and told apart by what they are over a prime
// field (bank.hpp); two that agree are typed as generally as can be (sizes.hpp), compared again at
// other shapes, dropped if earlier rules derive them (derive.hpp), written as a rule, and judged.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "discover/derive.hpp"
#include "discover/rule_text.hpp"
#include "discover/sizes.hpp"

namespace pw::discover {

/// Two graphs that are the same at small sizes.
struct Candidate {
  Pair pair;
  Parts parts;                                ///< of the sizes of its inputs
  std::map<std::int64_t, std::int64_t> real;  ///< what a size was in the graph it is of
  std::size_t seen = 1;                       ///< windows
  std::optional<std::size_t> window;          ///< that `before` is; one rule of a window stays
};

struct Rule {
  std::string name, text, test;
  std::string verdict;  ///< "same bits"
  std::int64_t bytes_before = 0, bytes_after = 0;
  std::size_t nodes_before = 0, nodes_after = 0, seen = 0;
};

struct Counts {
  std::size_t pieces = 0;       ///< of the graphs of --from
  std::size_t windows = 0;      ///< unlike pieces
  std::size_t unsized = 0;      ///< windows without small sizes
  std::size_t dearer = 0;       ///< equals of windows that save neither bytes nor nodes
  std::size_t graphs = 0;       ///< evaluated
  std::size_t pairs = 0;        ///< of equal fingerprint, each once
  std::size_t other_sizes = 0;  ///< not typed in general, or not equal at other shapes
  std::size_t unwritten = 0;    ///< one side does not say what the other needs
  std::size_t derived = 0;
  std::size_t unproved = 0;
  std::map<std::string, std::size_t> reasons;  ///< of unproved
};

/// What is known of a rule: the words for it, or why it cannot stay.
struct Judged {
  bool holds = false;
  std::string words;
};
/// `same_bits`: what the test of it may expect.
using Judge = std::function<Judged(const std::string& rule, const std::string& name)>;
/// Whether the rule and its test load without an error, and the test passes.
using TestRun = std::function<bool(const std::string& text)>;

struct Search {
  std::vector<std::string> ops;
  std::size_t nodes = 3, inputs = 4;
  std::uint64_t seed = 1;
};

/// Pairs of graphs of the given ops, each once, the smallest first. PW1440 for an op that is not
/// there.
Result<std::vector<Candidate>> enumerate(const ContextPtr& context, const Search& search,
                                         Counts& counts, const StageProgress& progress);

/// Windows of the graphs, each with what it equals and saves bytes or nodes; the best first.
std::vector<Candidate> replace_windows(const ContextPtr& context, const std::vector<Graph>& graphs,
                                       const Search& search, std::size_t often, Counts& counts,
                                       const StageProgress& progress);

/// Those that hold and are not derived, the ones that save most bytes first.
std::vector<Rule> settle(const ContextPtr& context, std::vector<Candidate> candidates,
                         std::uint64_t seed, const Judge& judge, const TestRun& test,
                         Derivations& earlier, Counts& counts, const StageProgress& progress);

}  // namespace pw::discover
