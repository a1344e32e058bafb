// Private to the importer: the state of one import, shared by the files that convert.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/build.hpp"
#include "graph/import/fx.hpp"
#include "graph/import/fx_ast.hpp"
#include "graph/import/fx_ops.hpp"
#include "graph/import/fx_symbols.hpp"

namespace pw::fx {

/// What an expression of the dump is.
struct Value {
  enum class Kind : std::uint8_t {
    none,
    tensor,
    boolean,
    integer,
    real,
    string,
    dtype,
    list,
    other
  } kind = Kind::none;
  ValueId tensor;
  bool boolean = false;
  DimId dim;  ///< integer: a constant or symbolic
  double real = 0;
  std::string text;  ///< string; other: the path or callee, as "torch.strided"
  DType dtype = DType::f32;
  std::vector<Value> items;  ///< list; items of a result that was never named are none
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

/// A name and a type that the dump gives a result.
struct Wanted {
  std::string name;
  TypeId type = Types::unknown();
  Span span;  ///< of the type
};

/// The statement a call stands in.
struct Site {
  Span span;
  std::string source;
  bool bound = true;            ///< something is assigned
  Wanted result;                ///< the assigned name; of a tuple, the tuple's
  std::map<int, Wanted> items;  ///< what `getitem` statements further down call the parts
};

/// The arguments of a call by parameter of a mapping.
struct Bound {
  const Mapping* mapping = nullptr;
  std::vector<std::optional<Value>> values;  ///< by parameter; nothing: left out, without a default
  std::shared_ptr<Env> env = {};             ///< of an item of a rule file: the names of its body
  [[nodiscard]] const Value* find(std::string_view parameter) const;
};

using Results = std::vector<ValueId>;
/// Nothing: the mapping does not apply after all.
using Applied = Result<std::optional<Results>>;

class Converter {
 public:
  Converter(const ContextPtr& context, const FxOptions& options, const Function& function);
  Result<FxImport> convert();

 private:
  // ---- fx_convert.cpp: statements and names
  Result<std::monostate> read_inputs();
  Result<std::monostate> read_symbols();
  void find_getitems();
  Result<std::monostate> statement(const Statement& s);
  Result<std::monostate> outputs(const Expr& e);
  Result<Value> evaluate(const Expr& e, const Site& site);
  Result<Value> evaluate_name(const Expr& e);
  Result<Value> evaluate_index(const Expr& e, const Site& site);
  Result<Value> evaluate_binary(const Expr& e, const Site& site);
  Result<Value> element(const Value& tuple, const Value& at, const Site& site);
  Result<Value> evaluate_call(const Expr& e, const Site& site);
  Result<TypeId> stated_type(const std::string& text, Span span);
  ValueId attribute_input(const std::string& name);
  void classify_inputs();
  void erase_buffers();

  // ---- fx_calls.cpp: calls
  Result<Value> call(std::string_view target, const Arguments& arguments, const Site& site);
  Result<Value> functionalised(const Arguments& arguments, const Site& site);
  Result<Value> functionalised_v2(const Arguments& arguments, const Site& site);
  Result<Value> functionalised_mapping(std::string_view target, const Arguments& arguments,
                                       const Site& site, bool& applied);
  Result<bool> call_in_place(const Bound& bound, const Site& site);
  [[nodiscard]] bool owned(ValueId value) const;
  void rebind(ValueId from, ValueId to);
  Result<Value> opaque(std::string_view target, const Arguments& arguments, const Site& site);
  std::optional<Bound> bind(const Mapping& mapping, const Arguments& arguments);
  Applied apply(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied apply_direct(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  std::optional<std::vector<ValueId>> operands_of(const Bound& bound, const Op& op,
                                                  const Site& site);
  std::optional<AttributeList> attributes_of(const Bound& bound, const Op& op);
  void drop_buffers(const Bound& bound, const Results& results);
  std::vector<Wanted> wanted_of(const Bound& bound, const Site& site, bool functionalised) const;

  // ---- fx_special.cpp: what is more than a renaming
  Applied apply_special(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied view(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied reshape_to(ValueId x, Shape shape, const std::vector<Wanted>& wanted, const Site& site);
  Applied permute(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied slice(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied select(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied split(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied expand(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied make(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied cast(ValueId x, DType dtype, const std::vector<Wanted>& wanted, const Site& site);
  Applied copy(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied scaled(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied reduce(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied linear(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);

  // ---- fx_foreign.cpp: what rule files say of foreign ops
  const std::vector<Mapping>* mappings_of(std::string_view target);
  ForeignValue foreign_value(const Value& value) const;
  ForeignArguments foreign_arguments(const Arguments& arguments) const;
  std::optional<Bound> bind_foreign_call(const Mapping& mapping, const Arguments& arguments);
  Applied foreign(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  void name_results(const std::vector<NodeId>& nodes, const Results& results,
                    const std::vector<Wanted>& wanted, const Site& site);

  // ---- fx_emit.cpp: nodes
  /// Adds a node; checks stated types at the old counts; lets makers' literals become symbols where
  /// nothing else fits.
  Result<Results> emit(std::string_view op, const std::vector<ValueId>& operands,
                       AttributeList attributes, const std::vector<Wanted>& wanted,
                       const Site& site);
  Result<Results> try_emit(OpId op, const std::vector<ValueId>& operands,
                           const AttributeList& attributes, const std::vector<Wanted>& wanted,
                           const Site& site);
  bool symbolise_maker(ValueId value, std::size_t choice);
  Result<std::monostate> check_stated(ValueId value, const Wanted& wanted, std::string_view op);
  std::optional<ValueId> as_operand(const Value& value, const Site& site);
  std::optional<Attribute> as_attribute(const Value& value, AttributeKind kind);
  [[nodiscard]] std::optional<Attribute> as_any_attribute(const Value& value) const;
  std::optional<Shape> as_shape(const Value& value) const;
  std::optional<std::int64_t> as_int(const Value& value) const;
  [[nodiscard]] const Type* type_of(ValueId value) const;  ///< null: unknown
  std::string fresh(const std::string& base);
  void note(std::string text) { report_.substitutions.push_back(std::move(text)); }
  NameId key(std::string_view name) { return context_.strings.intern(name); }
  [[nodiscard]] static Value tensor(ValueId v);
  [[nodiscard]] Value integer(std::int64_t v);

  ContextPtr context_ptr_;
  Context& context_;
  const FxOptions& options_;
  const Function& function_;
  Table table_;
  std::vector<std::shared_ptr<const ForeignOp>> declared_;  ///< that table_ refers to
  std::string reason_;  ///< why the mapping tried last does not apply
  Graph graph_;
  FxReport report_;
  Symbols symbols_;
  std::map<std::string, Value, std::less<>> env_;
  std::set<std::string, std::less<>> names_;          ///< every name of the dump, and those made up
  std::map<std::string, int, std::less<>> counters_;  ///< of made-up names, by their base
  std::map<std::string, std::map<int, Wanted>> getitems_;  ///< by the name of the tuple
  std::set<ValueId> makers_, dropped_, rope_caches_;
  Diagnostics errors_;
};

}  // namespace pw::fx
