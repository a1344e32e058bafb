// The record of a run: passes, matches, and every created, erased, redirected or changed thing, by
// ids that are never reused. The viewer's timeline and all counts are read from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/trivial_array.hpp"
#include "dsl/run_rules.hpp"

namespace pw {

struct PassBegin {
  std::string pass;
  std::uint64_t hash = 0;  ///< structural hash before; 0 without RewriteOptions::hashes
  std::size_t nodes = 0;
};
struct PassEnd {
  std::string pass;
  std::uint64_t hash = 0;
  std::size_t nodes = 0;
  double seconds = 0;  ///< not part of deterministic output; negative: unknown
};
struct MatchEvent {
  RuleId rule;
  std::vector<NodeId> matched;  ///< pattern order
  std::vector<std::pair<std::string, ValueId>> bindings;
  std::vector<NodeId> created, erased;
};
struct BuiltinEvent {  ///< dce, cse
  std::string pass;
  std::vector<NodeId> erased;
};
using JournalEvent = std::variant<PassBegin, PassEnd, MatchEvent, BuiltinEvent>;

/// Events in order, packed: a rewrite takes some thirty bytes. Reading unpacks one at a time.
class Journal {
 public:
  /// Id of a list of names that many matches bind, registered once.
  using NamesId = Id<struct BindingNamesTag>;
  NamesId register_names(std::vector<std::string> names);

  void add(const PassBegin& event);
  void add(const PassEnd& event);
  void add(const MatchEvent& event);
  void add(const BuiltinEvent& event);
  /// Adds a MatchEvent without constructing one. `values`: one for each of the names.
  void add_match(RuleId rule, NamesId names, std::span<const NodeId> matched,
                 std::span<const ValueId> values, std::span<const NodeId> created,
                 std::span<const NodeId> erased);

  class Iterator {
   public:
    using value_type = JournalEvent;
    using difference_type = std::ptrdiff_t;
    Iterator(const Journal* journal, std::size_t at) : journal_(journal), at_(at) {}
    JournalEvent operator*() const {
      std::size_t at = at_;
      return journal_->unpack(at);
    }
    Iterator& operator++() {
      journal_->unpack(at_);
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    const Journal* journal_;
    std::size_t at_;
  };
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, bytes_.size()}; }

  /// Position to roll back to.
  using Mark = std::size_t;
  [[nodiscard]] Mark mark() const { return bytes_.size(); }
  void rollback(Mark to) { bytes_.cut(to); }

  /// Releases spare memory at the end of a run.
  void settle() { bytes_.fit(bytes_.size()); }

  /// Keeps the rules that recursive patterns were opened to in the run.
  void keep(std::shared_ptr<OpenedRules> opened) { opened_ = std::move(opened); }
  /// Returns the rules that the events' ids refer to. `set`: the set that the run used.
  [[nodiscard]] RunRules rules_of(const RuleSet& set) const { return {set, opened_}; }

  /// Returns the number of rewrites by full rule name, in the final history.
  [[nodiscard]] std::size_t count(const RuleSet& set, std::string_view reference) const;
  [[nodiscard]] std::size_t total() const;
  /// Returns the rule of each rewrite, in order; for a rule opened from a recursive pattern, the
  /// loaded one.
  [[nodiscard]] std::vector<RuleId> fired(const RuleSet& set) const;
  /// Returns the rules of the rewrites after the mark, in order.
  [[nodiscard]] std::vector<RuleId> rules_since(Mark mark) const;
  [[nodiscard]] std::size_t bytes() const { return bytes_.capacity(); }

 private:
  friend Journal without_times(const Journal& journal);
  JournalEvent unpack(std::size_t& at) const;

  TrivialArray<std::uint8_t> bytes_;
  std::vector<std::vector<std::string>> names_;
  /// Names and number of nodes of a rule's first match: most others are alike.
  struct Usual {
    NamesId names;
    std::size_t matched = 0;
  };
  std::vector<Usual> usual_;  ///< by rule
  std::size_t width_ = 1;     ///< bytes of an id of the last match
  std::shared_ptr<OpenedRules> opened_;
};

/// Returns the same events with unknown times of passes.
[[nodiscard]] Journal without_times(const Journal& journal);

/// Writes JSON Lines, by default without times, so that the same input gives the same bytes.
std::string journal_to_json_lines(const Journal& journal, const Graph& graph, const RuleSet& rules,
                                  bool times = false);

}  // namespace pw
