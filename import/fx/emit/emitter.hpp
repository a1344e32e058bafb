// Private to the importer: adds nodes to the graph of an import.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/build.hpp"
#include "import/fx/emit/assumptions.hpp"
#include "import/fx/emit/effects.hpp"
#include "import/fx/emit/equal_sizes.hpp"
#include "import/fx/emit/names.hpp"
#include "import/fx/emit/symbols.hpp"
#include "import/fx/emit/values.hpp"

namespace pw::fx {

/// Appends nodes in the order of the statements. Invariants: the order is topological, each name is
/// unique, and no result contradicts the type that the dump states. It is all that most conversions
/// of calls need (calls/conversions.hpp).
class Emitter {
 public:
  Emitter(Graph& graph, Symbols& symbols, UniqueNames& names, EqualSizes& sizes, Effects& effects,
          FxReport& report)
      : context_(graph.context()),
        graph_(graph),
        symbols_(symbols),
        names_(names),
        sizes_(sizes),
        effects_(effects),
        assumptions_(graph, symbols, effects, report) {}

  [[nodiscard]] Context& context() const { return context_; }
  [[nodiscard]] Dims& dims() const { return context_.dims; }
  [[nodiscard]] Graph& graph() const { return graph_; }
  [[nodiscard]] Symbols& symbols() const { return symbols_; }
  [[nodiscard]] EqualSizes& sizes() const { return sizes_; }
  [[nodiscard]] Effects& effects() const { return effects_; }
  [[nodiscard]] Assumptions& assumptions() { return assumptions_; }

  void begin_statement();
  void set_group(std::string group) { group_ = std::move(group); }
  [[nodiscard]] const std::string& group() const { return group_; }

  /// Returns null if the type is unknown, or if it is not a value.
  [[nodiscard]] const Type* type_of(ValueId value) const;
  /// Adds a node; checks stated types at the old counts; turns makers' literals into symbols if
  /// nothing else fits.
  Result<Results> emit(std::string_view op, const std::vector<ValueId>& operands,
                       const NamedAttributes& attributes, const Outputs& wanted, const Site& site);
  Result<Results> emit(OpId op, const std::vector<ValueId>& operands,
                       const AttributeList& attributes, const Outputs& wanted, const Site& site);
  /// Attempts to build nodes. After a failure, makes symbols of the literals of the makers among
  /// the values read, one after the other, until an attempt succeeds; else returns the first error.
  template <class Attempt>
  Result<Results> with_symbols(const std::vector<ValueId>& read, const Attempt& attempt);
  /// Returns the value as an operand: numbers become rank-0 constants; None is an absent one.
  std::optional<ValueId> as_operand(const Value& value, const Site& site);
  /// Sets the stated type of a value without one. PW0511 if the type contradicts it.
  Status check_stated(ValueId value, const Wanted& wanted, std::string_view op);

  /// Generates a name.
  std::string fresh(std::string base) { return names_.fresh(std::move(base)); }
  /// Renames a value that may be older than the statement.
  void rename(ValueId value, const std::string& name);
  /// Returns true if a value may have another name than it was bound to.
  [[nodiscard]] bool renamed() const { return renamed_; }
  void set_renamed() { renamed_ = true; }

 private:
  Result<Results> try_emit(OpId op, const std::vector<ValueId>& operands,
                           const AttributeList& attributes, const Outputs& wanted,
                           const Site& site);
  bool symbolise_maker(ValueId value, std::size_t choice);
  NameId key(std::string_view name) { return context_.strings.intern(name); }

  Context& context_;
  Graph& graph_;
  Symbols& symbols_;
  UniqueNames& names_;
  EqualSizes& sizes_;
  Effects& effects_;
  Assumptions assumptions_;
  std::string group_;            ///< of the current statement
  std::size_t first_value_ = 0;  ///< the same
  bool renamed_ = false;
};

/// The members of an emitter that the parts of an import read most.
class EmitterPart {
 protected:
  explicit EmitterPart(Emitter& emitter)
      : context_(emitter.context()),
        graph_(emitter.graph()),
        emitter_(emitter),
        effects_(emitter.effects()),
        symbols_(emitter.symbols()) {}

  Context& context_;
  Graph& graph_;
  Emitter& emitter_;
  Effects& effects_;
  Symbols& symbols_;
};

template <class Attempt>
Result<Results> Emitter::with_symbols(const std::vector<ValueId>& read, const Attempt& attempt) {
  Result<Results> first = attempt();
  if (first || symbols_.empty()) return first;
  for (ValueId value : read) {
    if (!value.valid() || !effects_.is_maker(value)) continue;
    const NodeId maker = graph_.producer(value);
    const AttributesId attributes = graph_.attributes(maker);
    const TypeId type = graph_.type(value);
    for (std::size_t choice = 0; symbolise_maker(value, choice); ++choice) {
      if (Result<Results> again = attempt()) return again;
      graph_.set_attributes(maker, attributes);
      graph_.set_type(value, type);
      effects_.undo_note();
    }
  }
  return first;
}

/// Makes nodes of one statement in sequence. Keeps the first failure, and makes nothing after it.
class Maker {
 public:
  /// Creates a maker; the site must outlive it.
  Maker(Emitter& emitter, const Site& site) : emitter_(emitter), site_(site) {}
  /// Returns the first result; an invalid one after a failure.
  ValueId operator()(std::string_view op, const std::vector<ValueId>& operands,
                     const NamedAttributes& attributes, const Outputs& names = Outputs(1));
  [[nodiscard]] Applied done(ValueId value) const;
  [[nodiscard]] Emitter& emitter() const { return emitter_; }

 private:
  Emitter& emitter_;
  const Site& site_;
  std::optional<Diagnostics> failure_;
};

}  // namespace pw::fx
