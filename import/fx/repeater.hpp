// Private to the importer: memoises the conversion of statements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "import/fx/emit/versions.hpp"
#include "import/fx/read_names.hpp"
#include "import/fx/repeat.hpp"
#include "import/fx/tuple_items.hpp"

namespace pw::fx {

/// Copies the nodes of a statement that equals an earlier one up to names. Two statements are equal
/// if everything that their conversion depends on is: the callee, the arguments with types and
/// strides of tensors instead of names, and the stated types. Invariant: a conversion with effects
/// beyond nodes, tensors and the target's value (Effects::once) is never reused.
class Repeater {
 public:
  /// Creates a repeater; all arguments must outlive it. `one_by_one`: nothing is repeated.
  Repeater(Emitter& emitter, Versions& versions, UniqueNames& names, BoundNames<Value>& env,
           const TupleItems& items, const ReadNames& read_names, bool one_by_one)
      : context_(emitter.context()),
        graph_(emitter.graph()),
        emitter_(emitter),
        effects_(emitter.effects()),
        symbols_(emitter.symbols()),
        memory_(versions.memory()),
        names_(names),
        env_(env),
        items_(items),
        read_names_(read_names),
        one_by_one_(one_by_one) {}

  /// Copies the nodes of an equal statement, or converts this one.
  template <class Convert>
  Status convert(const Statement& s, const Convert& convert_statement);
  /// Ends a run of repeated statements, as conversion needs the graph's names.
  void take_time();

 private:
  struct Before {
    std::size_t nodes, values, tensors, storages, made_up;
  };
  bool take_trace(Repeat<Value>& out, const Statement& s, const Before& before) const;
  bool statement_key(const Statement& s);
  bool expression_key(const Expr& e);
  bool name_key(const Expr& e);
  bool tensor_key(const Value& value);
  const Repeat<Value>* repeat_of(bool& known);
  void repeat(const Repeat<Value>& of, const Statement& s);
  void hurry();
  std::uint32_t place_of(const Statement& s);
  template <class ValueOf, class NameOf>
  void repeat_node(const RepeatedNode& node, const Statement& s, const ValueOf& value_of,
                   const NameOf& name_of);
  [[nodiscard]] Before now() const;
  void keep_repeat(const Statement& s, Repeats<Value, Wanted>::Entry entry, std::uint64_t hash,
                   const Before& before);
  bool take_nodes(Repeat<Value>& out, const Statement& s, const Before& before) const;
  bool take_tensors(Repeat<Value>& out, const Before& before) const;
  bool take_value(Repeat<Value>& out, const Statement& s, const Before& before);
  [[nodiscard]] bool rising_names(const Before& before) const;
  [[nodiscard]] std::optional<RepeatedName> repeated_name(const std::string& name,
                                                          const Statement& s) const;
  [[nodiscard]] std::optional<RepeatedValue> repeated_value(ValueId v, const Before& before) const;
  [[nodiscard]] std::optional<RepeatedValue> repeated_handle(TensorId t,
                                                             const Before& before) const;

  Context& context_;
  Graph& graph_;
  Emitter& emitter_;
  Effects& effects_;
  Symbols& symbols_;
  Memory& memory_;
  UniqueNames& names_;
  BoundNames<Value>& env_;
  const TupleItems& items_;
  const ReadNames& read_names_;
  bool one_by_one_;
  Repeats<Value, Wanted> repeats_;
  std::size_t merges_ = 0;  ///< of symbols, that repeats_ has
};

template <class Convert>
Status Repeater::convert(const Statement& s, const Convert& convert_statement) {
  if (!statement_key(s)) return convert_statement();
  bool known = false;
  const Repeat<Value>* same = repeat_of(known);
  if (same != nullptr &&
      (same->opaque.empty() || same->read == read_names_.contains(s.targets[0].text))) {
    hurry();
    repeat(*same, s);
    return {};
  }
  if (known) return convert_statement();
  Repeats<Value, Wanted>::Entry entry{repeats_.key, {}};
  const std::uint64_t hash = repeats_.hash;
  const Before before = now();
  emitter_.begin_statement();
  Status done = convert_statement();
  if (done) keep_repeat(s, std::move(entry), hash, before);
  return done;
}

}  // namespace pw::fx
