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
  double seconds = 0;  ///< not part of deterministic output; negative: not known
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
  /// A list of names that many matches bind: registered once, referred to by number.
  using NamesId = Id<struct BindingNamesTag>;
  NamesId register_names(std::vector<std::string> names);

  void add(const PassBegin& event);
  void add(const PassEnd& event);
  void add(const MatchEvent& event);
  void add(const BuiltinEvent& event);
  /// The same as a MatchEvent, without making one. `values`: one for each of the names.
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

  /// A position to roll back to.
  using Mark = std::size_t;
  [[nodiscard]] Mark mark() const { return bytes_.size(); }
  void rollback(Mark to) { bytes_.cut(to); }

  /// At the end of a run: gives back what was kept for more.
  void settle() { bytes_.fit(bytes_.size()); }

  /// What recursive patterns were opened to in the run.
  void keep(std::shared_ptr<OpenedRules> opened) { opened_ = std::move(opened); }
  /// The rules that the ids of its events are of. `set`: with which the run was made.
  [[nodiscard]] RunRules rules_of(const RuleSet& set) const { return {set, opened_}; }

  /// Rewrites by full rule name, in the final history.
  [[nodiscard]] std::size_t count(const RuleSet& set, std::string_view reference) const;
  [[nodiscard]] std::size_t total() const;
  /// The rule of each rewrite, in order; of one that a recursive pattern was opened to, that which
  /// was loaded.
  [[nodiscard]] std::vector<RuleId> fired(const RuleSet& set) const;
  /// The rules of the rewrites behind the mark, in order.
  [[nodiscard]] std::vector<RuleId> rules_since(Mark mark) const;
  [[nodiscard]] std::size_t bytes() const { return bytes_.capacity(); }

 private:
  friend Journal without_times(const Journal& journal);
  JournalEvent unpack(std::size_t& at) const;

  TrivialArray<std::uint8_t> bytes_;
  std::vector<std::vector<std::string>> names_;
  /// What the first match of a rule bound, and how many nodes it matched: most others are alike.
  struct Usual {
    NamesId names;
    std::size_t matched = 0;
  };
  std::vector<Usual> usual_;  ///< by rule
  std::size_t width_ = 1;     ///< bytes of an id of the last match
  std::shared_ptr<OpenedRules> opened_;
};

/// The same events; how long passes took is not known.
[[nodiscard]] Journal without_times(const Journal& journal);

/// JSON Lines; times left out unless asked for, so that the same input gives the same bytes.
std::string journal_to_json_lines(const Journal& journal, const Graph& graph, const RuleSet& rules,
                                  bool times = false);

}  // namespace pw
