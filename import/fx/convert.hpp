// Private to the importer: the state of one import, shared by the files that convert. convert.cpp
// describes the method.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "import/fx/calls/repeat.hpp"
#include "import/fx/emitter.hpp"
#include "import/fx/fx.hpp"
#include "import/fx/names.hpp"
#include "import/fx/ops.hpp"
#include "import/fx/read_names.hpp"
#include "import/fx/text/ast.hpp"
#include "import/fx/torch_schemas.hpp"
#include "import/fx/values.hpp"
#include "import/fx/versions.hpp"

namespace pw::fx {

/// Results and writes of a known call.
struct Outcome {
  Results results;     ///< what it returns, in order; empty if it returns nothing
  bool tuple = false;  ///< it returns a tuple, even of one
  std::vector<std::pair<Value, ValueId>> written;  ///< arguments, and their contents afterwards
  bool copies = false;  ///< what it returns never shares memory with an argument
  /// True if its result shares memory with its first argument, although no view of the library
  /// leads there.
  bool gathered = false;
  std::string memory_format = {};  ///< as the call names it; empty: it does not
};

/// Arguments of a call that is kept unchanged.
struct Skeleton {
  std::vector<Value> operands;  ///< tensors, in order
  AttributeList attributes;
  std::vector<std::string> keywords;   ///< of each operand; empty: it is positional
  std::vector<std::size_t> positions;  ///< of each operand that has no keyword
  std::string text;                    ///< `%0, None, %1, mask = $mask`
  bool plain = true;                   ///< operands and attributes alone determine the call
};

/// Effect of an unknown call on its operands.
struct Unknown {
  std::optional<bool> functional;      ///< it writes none; nothing: as the dump is
  std::vector<std::string> arguments;  ///< it writes these only; empty: any tensor
  std::string why;                     ///< why the rows of its target do not apply; may be empty
};
class Converter {
 public:
  /// Creates a converter. `signature`: the text that torch.export writes below its graph, or empty.
  Converter(const ContextPtr& context, const FxOptions& options, const Function& function,
            std::string_view signature);
  Converter(const Converter&) = delete;  // its parts refer to one another
  Converter& operator=(const Converter&) = delete;
  Result<FxImport> convert();

  // ---- fx_direct.cpp: for importers of other forms, which make the calls themselves. Such calls
  // are pure.
  Status begin();  ///< reads the function's parameters
  /// Returns the value of a name of torch's, such as torch.float32 or inf; nothing for other names.
  static std::optional<Value> torch_word(const std::string& text);
  /// Adds a call with this name in the graph, in PyTorch's types; `items`: names of the parts of
  /// its result. The call writes nothing.
  Result<Value> add_call(std::string_view target, const Arguments& arguments, std::string name,
                         std::map<int, Wanted> items);
  /// Adds a node for a call of which only its operands are known. If its type is empty, only other
  /// such nodes may read it.
  Result<Value> add_unseen(const std::string& name, const std::vector<Value>& reads,
                           const std::string& type);
  /// Reserves a name: no generated name will equal it.
  void reserve(const std::string& name) { names_.insert(name); }
  /// States the type of a value that has none yet, in torch's notation.
  Status state_type(const Value& value, const std::string& type);
  Value add_weight(const std::string& name, TypeId type);
  [[nodiscard]] const Value* input(std::string_view name) const;
  /// Makes a call if a row of its target applies; otherwise returns the reason and adds nothing to
  /// the graph. `name`: the prefix of generated names.
  OrReason<Value> try_call(std::string_view target, const Arguments& arguments,
                           const std::string& name);
  /// Makes a node of an op of the library, with its results; otherwise returns the reason.
  OrReason<std::vector<Value>> try_op(std::string_view op, const std::vector<Value>& operands,
                                      const NamedAttributes& attributes, const std::string& name);
  /// Keeps a call unchanged, for the reason `why`. The results are the items of a list.
  Result<Value> keep_call(std::string_view target, const Arguments& arguments,
                          const std::vector<Wanted>& results, bool random, const std::string& why);
  [[nodiscard]] const Type* type(const Value& value) const {
    return emitter_.type_of(value.tensor);
  }
  [[nodiscard]] Context& context() const { return context_; }
  [[nodiscard]] const Facts& facts() const { return graph_.facts; }
  [[nodiscard]] std::string name_of(const Value& value) const {
    return std::string(graph_.value_name(value.tensor));
  }
  /// Gives a generated value this name, if it is free.
  void name(const Value& value, const std::string& name);
  void set_group(std::string group) { emitter_.set_group(std::move(group)); }
  Result<FxImport> finish(const std::vector<std::pair<std::string, Value>>& outputs);

 private:
  Result<FxImport> finished();
  // ---- fx_convert.cpp: statements and names
  void find_getitems();
  std::optional<int> item_of(const std::string& tuple, const Expr& index);
  void find_functional(const Expr& e);
  void name_output(const Expr& e, std::size_t at);
  Status write_back();
  Status statement(const Statement& s);
  Status convert_statement(const Statement& s);
  Status outputs(const Expr& e);
  Result<Value> evaluate(const Expr& e, const Site& site);
  Result<Value> evaluate_name(const Expr& e);
  Result<Value> evaluate_index(const Expr& e, const Site& site);
  Result<Value> evaluate_binary(const Expr& e, const Site& site);
  Result<Value> element(const Value& tuple, const Value& at, const Site& site);
  Result<Value> evaluate_call(const Expr& e, const Site& site);
  ValueId attribute_input(const std::string& name);
  void erase_buffers();
  [[nodiscard]] Graph without_layer_names() const;

  // ---- fx_repeat.cpp: statements that are equal to earlier ones
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
  void take_time();
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

  // ---- fx_inputs.cpp: inputs, their types, symbols and kinds
  Status read_inputs();
  Status read_symbols();
  Status read_symbol_input(const Parameter& p);
  void declare_symbols(const Shape& shape);
  void fix_symbols();
  TypeId given_type(const std::string& attribute);
  Status check_given_types();
  void note_untyped();
  Result<DimId> named_dim(const std::string& place, const std::string& input, int axis);
  Status rename_symbols(const std::string& place, const std::string& name,
                        const std::vector<DimId>& dims);
  void read_ranges();
  [[nodiscard]] std::optional<InputKind> said_kind(const std::string& name);
  Result<TypeId> stated_type(const std::string& text, Span span);
  void take_strides(const Value& value, std::string_view text);
  void classify_inputs();

  // ---- fx_calls.cpp: calls of known ops
  Result<Value> call(std::string_view target, const Arguments& arguments, const Site& site);
  /// Makes a known call; nothing if no row of the target applies, with the reason in `why`.
  Result<std::optional<Outcome>> known_call(std::string_view target, const Arguments& arguments,
                                            const Site& site, bool functionalised,
                                            std::string& why);
  Result<std::optional<Value>> view_in_place(std::string_view target, const Arguments& arguments,
                                             const Site& site);
  Result<std::optional<Value>> in_place(std::string_view target, const Arguments& arguments,
                                        const Site& site, std::string& why);
  Result<std::optional<Value>> out_variant(std::string_view target, const Arguments& arguments,
                                           const Site& site, std::string& why);
  Result<Value> size_of(const Bound& bound, const Site& site);
  void erase_unused(std::size_t first_new);
  void take_memory_format(TensorId made, ValueId result, std::string_view format,
                          std::string_view target);
  Value as_result(const Outcome& outcome, const Arguments& arguments, std::size_t first_new,
                  std::string_view target);
  [[nodiscard]] std::optional<Bound> bind(const Mapping& mapping, const Arguments& arguments,
                                          std::string& why);
  Applied as_strided(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied apply_row(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied apply(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  void drop_buffers(const Bound& bound, const Results& results);
  std::vector<Wanted> wanted_of(const Bound& bound, const Site& site, bool functionalised);

  // ---- fx_functionalised.cpp: calls that return what they wrote
  Result<Value> functionalised(const Arguments& arguments, const Site& site);
  Result<Value> functionalised_unknown(std::string_view target, const Arguments& arguments,
                                       const Site& site, std::string why);
  void name_call(std::size_t first_new, const Site& site);
  Result<Value> functionalised_v2(const Arguments& arguments, const Site& site);
  Result<Value> argument_of_base(const Arguments& arguments, const std::string& name,
                                 const std::vector<Value>& bases, std::string_view target,
                                 const Site& site);
  Result<Value> strided_view(const Value& base, const Value& size, const Value& stride,
                             const Value& offset, std::string_view target, const Site& site);

  // ---- fx_opaque.cpp: calls of unknown ops
  /// The result of a call: an operand, or nothing for its next result.
  using Returned = std::vector<std::optional<std::size_t>>;
  Returned returned_by(const std::optional<Schema>& schema, const Skeleton& call,
                       std::string_view target, const std::vector<std::size_t>& written,
                       const Site& site, std::vector<Wanted>& wanted);
  Value returned_value(const Returned& returned, const std::optional<Schema>& schema,
                       const Skeleton& call, const Results& results, std::string_view target);
  Result<Value> opaque(std::string_view target, const Arguments& arguments, const Site& site,
                       const Unknown& unknown = {});
  [[nodiscard]] Skeleton skeleton_of(const Arguments& arguments);
  [[nodiscard]] std::optional<Schema> schema_of(std::string_view target) const;
  void take_argument(Skeleton& out, const std::string& name, const Value& value, int depth);
  [[nodiscard]] std::vector<std::size_t> written_operands(const Skeleton& call,
                                                          std::string_view target,
                                                          const std::optional<Schema>& schema,
                                                          const Unknown& unknown) const;
  void note_assumed_writes();
  std::vector<Wanted> opaque_results(const Site& site) const;
  void make_symbolic(std::vector<Wanted>& wanted, std::string_view op, const Skeleton& call);
  std::optional<std::string> shared_operands(const Skeleton& call,
                                             const std::vector<std::size_t>& written) const;
  Result<OpId> opaque_op(std::string_view target, const std::optional<Schema>& schema);
  TensorId opaque_view(const Value& base, NodeId node, std::size_t result, std::string_view target);

  // ---- fx_python.cpp: Python operations without an op of ATen, and Dynamo's forms of ops
  /// Handles Python operations; nothing if it is a call of an op, by its target.
  Result<std::optional<Value>> python(const std::string& callee, const Arguments& arguments,
                                      const Site& site);
  Result<std::optional<Value>> operator_call(const std::string& callee, const Arguments& arguments,
                                             const Site& site);
  Result<std::optional<Value>> number_call(const std::string& callee, const Arguments& arguments,
                                           const Site& site);
  Result<std::optional<Value>> named_in_torch(const std::string& callee, const Arguments& arguments,
                                              const Site& site);
  Result<Value> infix(std::string_view op, const Value& a, const Value& b, Span span,
                      const Site& site);
  Result<Value> of_number(std::string_view op, std::string_view method, const Value& a,
                          const Value& x, const Site& site);
  Result<Value> unary(std::string_view op, const Value& x, const Site& site);
  Result<Value> attribute(const Value& x, const std::string& name, const Site& site);
  std::optional<Value> number(std::string_view function, const std::vector<Value>& of);
  bool bookkeeping(std::string_view callee);
  /// Returns a value whose type is stated as Sym(…), and that is not a dim yet.
  Result<Value> as_stated(Value value, const Statement& s);
  Status assign(const Expr& target, const Value& value, const Site& site);
  void find_names(const Expr& target);
  Result<Value> part_of(const Value& list, const Value& at, const Site& site);

  // ---- fx_subscript.cpp
  Result<Value> subscript(const Value& x, const Value& at, const Site& site);
  Result<Value> set_item(const Value& x, const Value& at, const Value& to, const Site& site);

  // ---- fx_torch.cpp: methods and functions of torch as ATen's overloads
  Result<Value> torch_call(const std::string& name, bool method, Arguments arguments,
                           const Site& site);
  std::optional<Value> size_call(const std::string& name, const Shape& shape, Arguments& arguments,
                                 std::string& target);
  void take_dropout(const std::string& name, Arguments& arguments, std::string& target);
  void take_shape_of(const std::string& name, std::vector<Value>& args, std::string& target);
  std::optional<Value> rewritten(const std::string& name, Arguments& arguments,
                                 std::string& target);
  void as_vector_norm(Arguments& arguments, std::string& target);
  void as_axes_of_tensordot(Arguments& arguments, std::size_t rank);
  Result<Value> chain_of_products(const Arguments& arguments, const Site& site);
  [[nodiscard]] std::string overload_of(const std::string& name, const Arguments& arguments);
  Result<Value> to_method(const Arguments& arguments, const Site& site);
  Result<Value> itself(const std::string& method, const Value& x, const Site& site);

  // ---- fx_foreign.cpp: foreign ops declared in rule files
  const std::vector<Mapping>* mappings_of(std::string_view target);
  [[nodiscard]] ForeignValue foreign_value(const Value& value) const;
  std::optional<Bound> bind_foreign_call(const Mapping& mapping, const Arguments& arguments,
                                         std::string& why);
  Applied foreign(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Result<Results> build_item(const Bound& bound, const std::vector<Wanted>& wanted,
                             const Site& site);
  void name_results(const std::vector<NodeId>& nodes, const Results& results,
                    const std::vector<Wanted>& wanted, const Site& site);

  // ---- fx_ranks.cpp: rows that the ranks of a group share
  void find_ranks(const Expr& e);
  Applied shard_rows(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);

  ContextPtr context_ptr_;
  Context& context_;
  const FxOptions& options_;
  const Function& function_;
  bool typed_;  ///< the dump states the type of some input
  std::string_view signature_;
  std::map<std::string, InputKind> signed_kinds_;
  std::optional<bool> lifted_;  ///< Dynamo made parameters inputs, and named them so
  Table table_;
  std::vector<std::shared_ptr<const ForeignOp>> declared_;  ///< that table_ refers to
  Graph graph_;
  FxReport report_;
  Symbols symbols_;
  UniqueNames names_;
  EqualSizes sizes_;
  Effects effects_;
  Emitter emitter_;
  Versions versions_;
  Memory& memory_;
  std::map<std::string, std::vector<std::string_view>> overloads_;  ///< of ATen, by name
  std::set<std::pair<std::string, std::int64_t>>
      ranks_;  ///< groups that collectives name, and sizes
  BoundNames<Value> env_;
  std::unordered_map<std::string, std::map<int, Wanted>> getitems_;  ///< by the name of the tuple
  std::unordered_map<std::string, std::vector<std::string>> item_keys_;  ///< the same
  ReadNames read_names_;
  bool functional_ = false;        ///< the dump is functionalised: calls write nothing
  bool pure_ = false;              ///< and unknown calls have no effect either
  std::set<std::string> assumed_;  ///< ops whose writes nothing states
  Diagnostics errors_;
  Repeats<Value, Wanted> repeats_;
  std::size_t merges_ = 0;                               ///< of symbols, that repeats_ has
  std::unordered_map<std::string, TypeId> known_types_;  ///< by what states them
  std::size_t symbol_changes_ = 0;                       ///< that known_types_ has
};

}  // namespace pw::fx
