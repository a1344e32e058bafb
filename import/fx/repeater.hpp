// Private to the importer: memoises the conversion of statements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "import/fx/emit/versions.hpp"
#include "import/fx/read_names.hpp"
#include "import/fx/repeat.hpp"
#include "import/fx/statement_key.hpp"
#include "import/fx/tuple_items.hpp"

namespace pw::fx {

/// Copies the nodes of a statement that equals an earlier one up to names (StatementKey).
/// Invariant: a conversion with effects beyond nodes, tensors and the target's value
/// (Effects::once) is never reused.
class Repeater : EmitterPart {
 public:
  /// Creates a repeater; all arguments must outlive it. `one_by_one`: nothing is repeated.
  Repeater(Emitter& emitter, Versions& versions, UniqueNames& names, BoundNames<Value>& env,
           const TupleItems& items, const ReadNames& read_names, bool one_by_one)
      : EmitterPart(emitter),
        memory_(versions.memory()),
        names_(names),
        env_(env),
        items_(items),
        read_names_(read_names),
        one_by_one_(one_by_one),
        key_(emitter, memory_, names, env, items) {}

  /// Copies the nodes of an equal statement, or converts this one.
  template <class Convert>
  Status convert(const Statement& s, const Convert& convert_statement);
  /// Ends a run of repeated statements, as conversion needs the graph's names.
  void take_time();

 private:
  struct Before {
    std::size_t nodes, values, tensors, storages, made_up;
  };
  bool take_trace(Repeat& out, const Statement& s, const Before& before) const;
  const Repeat* repeat_of(bool& known);
  void repeat(const Repeat& of, const Statement& s);
  void hurry();
  std::uint32_t place_of(const Statement& s);
  template <class ValueOf, class NameOf>
  void repeat_node(const RepeatedNode& node, const Statement& s, const ValueOf& value_of,
                   const NameOf& name_of);
  [[nodiscard]] Before now() const;
  void keep_repeat(const Statement& s, Repeats::Entry entry, std::uint64_t hash,
                   const Before& before);
  bool take_nodes(Repeat& out, const Statement& s, const Before& before) const;
  bool take_tensors(Repeat& out, const Before& before) const;
  bool take_value(Repeat& out, const Statement& s, const Before& before);
  [[nodiscard]] bool rising_names(const Before& before) const;
  [[nodiscard]] std::optional<RepeatedName> repeated_name(const std::string& name,
                                                          const Statement& s) const;
  [[nodiscard]] std::optional<RepeatedValue> repeated_value(ValueId v, const Before& before) const;
  [[nodiscard]] std::optional<RepeatedValue> repeated_handle(TensorId t,
                                                             const Before& before) const;

  Memory& memory_;
  UniqueNames& names_;
  BoundNames<Value>& env_;
  const TupleItems& items_;
  const ReadNames& read_names_;
  bool one_by_one_;
  StatementKey key_;
  Repeats repeats_;
  std::size_t merges_ = 0;  ///< of symbols, that repeats_ has
};

template <class Convert>
Status Repeater::convert(const Statement& s, const Convert& convert_statement) {
  if (merges_ != symbols_.merges()) repeats_ = {};  // they have the old symbols
  merges_ = symbols_.merges();
  if (one_by_one_ || !key_.read(s)) return convert_statement();
  bool known = false;
  const Repeat* same = repeat_of(known);
  if (same != nullptr &&
      (same->opaque.empty() || same->read == read_names_.contains(s.targets[0].text))) {
    hurry();
    repeat(*same, s);
    return {};
  }
  if (known) return convert_statement();
  Repeats::Entry entry{key_.words(), {}};
  const std::uint64_t hash = key_.hash();
  const Before before = now();
  emitter_.begin_statement();
  Status done = convert_statement();
  if (done) keep_repeat(s, std::move(entry), hash, before);
  return done;
}

}  // namespace pw::fx
