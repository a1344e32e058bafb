// Discovers rules automatically. Small graphs are enumerated and fingerprinted over a prime field
// (bank.hpp). Equal pairs are generalized to symbolic sizes (sizes.hpp), compared again at other
// shapes, and dropped if earlier rules derive them (derive.hpp). The remaining pairs are written as
// rules and judged.
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

/// Two graphs that are equal at small sizes.
struct Candidate {
  Pair pair;
  Parts parts;                                ///< splits of its inputs' sizes
  std::map<std::int64_t, std::int64_t> real;  ///< original size for each small size
  std::size_t seen = 1;                       ///< number of windows
  std::optional<std::size_t>
      window;  ///< the window that `before` is; one rule is kept for each window
};

struct Rule {
  std::string name, text, test;
  std::string verdict;  ///< "same bits"
  std::int64_t bytes_before = 0, bytes_after = 0;
  std::size_t nodes_before = 0, nodes_after = 0, seen = 0;
};

struct Counts {
  std::size_t pieces = 0;       ///< pieces of the graphs in --from
  std::size_t windows = 0;      ///< distinct pieces
  std::size_t unsized = 0;      ///< windows without a small-size form
  std::size_t dearer = 0;       ///< counterparts of windows that save neither bytes nor nodes
  std::size_t graphs = 0;       ///< graphs evaluated
  std::size_t pairs = 0;        ///< distinct pairs with equal fingerprints
  std::size_t other_sizes = 0;  ///< without general types, or unequal at other shapes
  std::size_t unwritten = 0;    ///< one side does not determine what the other needs
  std::size_t derived = 0;
  std::size_t unproved = 0;
  std::map<std::string, std::size_t> reasons;  ///< counts of unproved rules
};

/// The verdict on a rule in words, or the reason for a rejection.
struct Judged {
  bool holds = false;
  std::string words;
};
/// Judges a rule. `same_bits` states what its test may expect.
using Judge = std::function<Judged(const std::string& rule, const std::string& name)>;
/// Returns true if the rule and its test load without an error and the test passes.
using TestRun = std::function<bool(const std::string& text)>;

struct Search {
  std::vector<std::string> ops;
  std::size_t nodes = 3, inputs = 4;
  std::uint64_t seed = 1;
};

/// Enumerates pairs of equal graphs of the given ops, each once, smallest first. Fails with PW1440
/// for an unknown op.
Result<std::vector<Candidate>> enumerate(const ContextPtr& context, const Search& search,
                                         Counts& counts, const StageProgress& progress);

/// Returns the graphs' windows with counterparts that save bytes or nodes, best first.
std::vector<Candidate> replace_windows(const ContextPtr& context, const std::vector<Graph>& graphs,
                                       const Search& search, std::size_t often, Counts& counts,
                                       const StageProgress& progress);

/// Returns the rules that hold and are not derived, in descending order of saved bytes.
std::vector<Rule> settle(const ContextPtr& context, std::vector<Candidate> candidates,
                         std::uint64_t seed, const Judge& judge, const TestRun& test,
                         Derivations& earlier, Counts& counts, const StageProgress& progress);

}  // namespace pw::discover
