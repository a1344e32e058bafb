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

#include "graph/build.hpp"
#include "import/fx/text/ast.hpp"
#include "import/fx/calls/repeat.hpp"
#include "import/fx/fx.hpp"
#include "import/fx/memory.hpp"
#include "import/fx/names.hpp"
#include "import/fx/ops.hpp"
#include "import/fx/symbols.hpp"
#include "import/fx/torch_schemas.hpp"

namespace pw::fx {

/// Set of names, whose characters are stored together.
class WordSet {
 public:
  /// Adds a word; returns true if it is new.
  bool insert(std::string_view word) {
    const std::size_t before = words_.size();
    words_.intern(word);
    return words_.size() > before;
  }
  [[nodiscard]] bool contains(std::string_view word) const { return words_.find(word).valid(); }
  [[nodiscard]] std::size_t size() const { return words_.size(); }

 private:
  Strings words_;
};

/// Value of an expression of the dump.
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
  TensorId handle;  ///< tensor: the memory that holds its contents
  ValueId tensor;   ///< the present contents, after resolution
  bool boolean = false;
  DimId dim;  ///< integer: a constant or symbolic
  double real = 0;
  std::string text;  ///< string; other: the path or callee, as "torch.strided"
  DType dtype = DType::f32;
  std::vector<Value> items;  ///< list; items of a result that were never named are `none`; other,
                             ///< "slice": start, end, step
  std::vector<std::string> keys;  ///< of a list that is a dict: the keys of its items
  bool own_name = false;          ///< its tensor's name is known to be the name that it is bound to
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

/// A name and a type that the dump gives to a result.
struct Wanted {
  std::string name;
  TypeId type = Types::unknown();
  Span span;  ///< of the type
};

/// The statement that contains a call.
struct Site {
  Span span;
  std::string source;
  bool bound = true;                   ///< something is assigned
  Wanted result;                       ///< the assigned name; of a tuple, the tuple's
  std::map<int, Wanted> items;         ///< names that later `getitem` statements give the parts
  std::vector<std::string> keys = {};  ///< of the items, where statements take them by key
};

/// Arguments of a call by parameter of a mapping.
struct Bound {
  const Mapping* mapping = nullptr;
  std::vector<std::optional<Value>> values;  ///< by parameter; nothing: omitted, without a default
  std::shared_ptr<const Env> env = {};       ///< of an item of a rule file: the names of its body
  [[nodiscard]] const Value* find(std::string_view parameter) const;
};

using Results = std::vector<ValueId>;

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
/// Results of a mapping; nothing: it does not apply after all.
using Applied = Result<std::optional<Results>>;

/// Makes nodes in sequence. Keeps the first failure, and makes nothing after it.
class Maker {
 public:
  using Emit =
      std::function<Result<Results>(std::string_view op, const std::vector<ValueId>& operands,
                                    AttributeList attributes, const std::vector<Wanted>& names)>;
  explicit Maker(Emit emit) : emit_(std::move(emit)) {}
  /// Returns the first result; an invalid one after a failure.
  ValueId operator()(std::string_view op, const std::vector<ValueId>& operands,
                     AttributeList attributes,
                     const std::vector<Wanted>& names = std::vector<Wanted>(1));
  [[nodiscard]] Applied done(ValueId value) const;

 private:
  Emit emit_;
  std::optional<Diagnostics> failure_;
};

/// Returns a target without `torch.ops.`.
[[nodiscard]] std::string_view strip(std::string_view target);
/// Returns a keyword argument, or null.
[[nodiscard]] const Value* keyword(const Arguments& arguments, std::string_view name);

class Converter {
 public:
  /// Creates a converter. `signature`: the text that torch.export writes below its graph, or empty.
  Converter(const ContextPtr& context, const FxOptions& options, const Function& function,
            std::string_view signature);
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
  OrReason<std::vector<Value>> try_op(
      std::string_view op, const std::vector<Value>& operands,
      const std::vector<std::pair<std::string_view, Attribute>>& attributes,
      const std::string& name);
  /// Keeps a call unchanged, for the reason `why`. The results are the items of a list.
  Result<Value> keep_call(std::string_view target, const Arguments& arguments,
                          const std::vector<Wanted>& results, bool random, const std::string& why);
  [[nodiscard]] const Type* type(const Value& value) const { return type_of(value.tensor); }
  [[nodiscard]] Context& context() const { return context_; }
  [[nodiscard]] const Facts& facts() const { return graph_.facts; }
  [[nodiscard]] std::string name_of(const Value& value) const {
    return std::string(graph_.value_name(value.tensor));
  }
  /// Gives a generated value this name, if it is free.
  void name(const Value& value, const std::string& name);
  void set_group(std::string group) { group_ = std::move(group); }
  Result<FxImport> finish(const std::vector<std::pair<std::string, Value>>& outputs);

 private:
  Result<FxImport> finished();
  // ---- fx_convert.cpp: statements and names
  void find_getitems();
  std::optional<int> item_of(const std::string& tuple, const Expr& index);
  void find_functional(const Expr& e);
  [[nodiscard]] bool reads(const std::string& name) const;
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
  Value input_tensor(ValueId input);
  ValueId attribute_input(const std::string& name);
  void erase_buffers();

  // ---- fx_repeat.cpp: statements that are equal to earlier ones
  struct Before {
    std::size_t nodes, values, tensors, storages, made_up;
  };
  /// Effects of a statement beyond its nodes, tensors and value.
  struct Trace {
    std::vector<ValueId> makers, dropped, caches;
    std::vector<std::string> opaque, reasons;
  };
  static void leave(std::set<ValueId>& in, std::vector<ValueId>& trace, ValueId value) {
    in.insert(value);
    trace.push_back(value);
  }
  /// Marks the statement as having further effects, so that it is not repeated.
  void once() { repeatable_ = false; }
  bool take_trace(Repeat<Value>& out, const Statement& s, const Before& before) const;
  /// Renames a value that may be older than the statement.
  void rename(ValueId value, const std::string& name);
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

  // ---- fx_versions.cpp: tensors that share memory
  Result<ValueId> read(TensorId id, const Site& site);
  Result<ValueId> read_view(TensorId id, const Site& site);
  Result<ValueId> replay(TensorId id, std::size_t first, const Site& site);
  Result<ValueId> derive(ValueId value, const std::vector<ViewStep>& steps, const Site& site);
  Result<ValueId> derive_step(ValueId value, const ViewStep& step, const Site& site);
  [[nodiscard]] Touch touched(const Write& write, TensorId id) const;
  Status write(TensorId id, ValueId value, const Site& site, bool assumed = false);
  [[nodiscard]] bool can_be_written(TensorId id) const;
  Result<ValueId> fit(ValueId value, ValueId like, const Site& site);
  Result<ValueId> put_back(TensorId whole, ValueId old, const Write& write, const Site& site);
  Result<ValueId> put_back_step(const ViewStep& step, ValueId old, ValueId part, const Site& site);
  Result<ValueId> put_back_unknown(ValueId part, const Site& site);
  Result<ValueId> put_back_slice(const ViewStep& step, ValueId old, ValueId part, const Site& site);
  Result<ValueId> put_back_strided(ValueId old, ValueId part, std::int64_t axis, DimId start,
                                   std::int64_t stride, const Site& site);
  tl::unexpected<Diagnostics> refuse_unsure(TensorId written, TensorId wanted, const Site& site);
  TensorId tensor_of_result(ValueId result, std::span<const Value* const> arguments,
                            std::size_t first_new, std::string_view target);
  TensorId add_view(const Value& base, std::vector<ViewStep> steps, ValueId value,
                    std::string_view target);
  TensorId gathered_view(const Value& base, ValueId value, std::string_view target);
  std::optional<Shape> strides_after(const ViewStep& step, Shape strides, bool& sure);
  std::optional<Shape> fresh_strides(ValueId value, std::span<const Value* const> arguments);
  /// Returns the strides of a tensor in row-major order; nothing if its type is unknown.
  std::optional<Shape> dense_strides_of(ValueId value);
  DimId count_of(const Shape& shape);
  Status resolve(Value& value, const Site& site);

  // ---- fx_inputs.cpp: inputs, their types, symbols and kinds
  Status read_inputs();
  Status read_symbols();
  Status read_symbol_input(const Parameter& p);
  void declare_symbols(const Shape& shape);
  void fix_symbols();
  // ---- fx_equal.cpp: sizes that the dump's guards declare equal
  void read_equal_sizes();
  void make_equal_sizes(DimId a, DimId b);
  bool narrow_to_equal(DimId a, DimId b);
  [[nodiscard]] DimId representative(DimId size);
  [[nodiscard]] bool same_size(DimId a, DimId b);
  [[nodiscard]] bool same_sizes(TypeId a, TypeId b);
  bool unify_sizes(Value& value, Maker& make);
  bool unify_sizes(Bound& bound, const Site& site);
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
  Applied apply(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied apply_direct(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  std::optional<std::vector<ValueId>> operands_of(const Bound& bound, const Op& op,
                                                  const Site& site);
  std::optional<AttributeList> attributes_of(const Bound& bound, const Op& op);
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

  // ---- fx_special.cpp: translations beyond renaming
  Applied apply_special(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  [[nodiscard]] std::optional<Shape> shape_of(const Value* tensor) const;
  Applied view(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied reshape_to(ValueId x, Shape shape, const std::vector<Wanted>& wanted, const Site& site);
  Applied permute(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  DimId slice_bound(const Value& v, DimId size, DimId left_out, const Site& site);
  Applied permuted(ValueId x, const std::vector<std::size_t>& to, const std::vector<Wanted>& wanted,
                   const Site& site);
  Applied slice(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied select(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied split(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied expand(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied make(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied cast(ValueId x, DType dtype, const std::vector<Wanted>& wanted, const Site& site);
  Applied copy(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied reduce(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);

  // ---- fx_scatter.cpp: parts of an axis
  [[nodiscard]] static std::optional<std::size_t> axis_in(std::optional<std::int64_t> given,
                                                          std::size_t rank);
  Applied narrow(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied strided_scatter(ValueId x, ValueId src, std::size_t axis, DimId start,
                          std::int64_t stride, const std::vector<Wanted>& wanted, const Site& site);
  Applied select_scatter(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);

  // ---- fx_promotion.cpp: PyTorch's type promotion
  Applied cat(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied scalar(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied stack(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied unbind(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);

  // ---- fx_indexing.cpp: elements chosen by tensors of indices
  struct Chosen {
    std::vector<std::size_t> axes;   ///< that are indexed
    std::vector<ValueId> indices;    ///< of each
    std::vector<std::size_t> order;  ///< the axes, and then the others
    bool together = false;           ///< the axes are adjacent
  };
  Applied index(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied index_put(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied put_masked(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied gather(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied scatter(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied scatter_mean(Maker& make, ValueId x, ValueId src, const std::vector<ValueId>& places,
                       bool alone, const std::vector<Wanted>& wanted);
  Applied flip(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied convolution(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  [[nodiscard]] Maker maker(const Site& site);
  ValueId in_order(Maker& make, ValueId x, const std::vector<std::size_t>& to);
  std::optional<Chosen> chosen_axes(Maker& make, const Value* indices, std::size_t rank);
  AttributeList index_attributes(const Chosen& chosen);
  std::vector<ValueId> places_along(Maker& make, ValueId index, std::size_t axis);
  [[nodiscard]] std::optional<std::size_t> indexed_axis(const Bound& bound) const;
  std::optional<ValueId> scattered_source(Maker& make, const Bound& bound);
  ValueId put_at(Maker& make, ValueId x, ValueId values, const std::vector<ValueId>& places,
                 std::string_view how, const std::vector<Wanted>& names);
  ValueId without_self(Maker& make, ValueId x, ValueId src, const std::vector<ValueId>& places,
                       std::string_view how);
  ValueId flipped(Maker& make, ValueId x, DimId extent, std::size_t axis);

  // ---- fx_padding.cpp: axes made, repeated, padded, and several of them reduced
  Applied arange(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied repeat(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied pad(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied pad_edges(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied diagonal(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied variance(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied any_of_axes(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  ValueId divisor(Maker& make, DimId count, double less, DType dtype);
  [[nodiscard]] std::optional<double> correction_of(const Bound& bound) const;
  std::optional<ValueId> whole_range(Maker& make, DimId start, DimId end, DimId step,
                                     const Site& site);
  std::optional<ValueId> real_range(Maker& make, const Value& start, const Value& end,
                                    const Value& step, DType dtype, const Site& site);
  using Pads = std::vector<std::pair<DimId, DimId>>;  ///< before and after, the last axis first
  [[nodiscard]] std::optional<Pads> pads_of(const Value* list, std::size_t rank) const;
  std::optional<ValueId> padded(Maker& make, ValueId x, const Pads& pads, const Attribute& value);
  std::optional<Pads> same_pads(const Shape& kernel, const Shape& dilation);
  ValueId part_of_axis(Maker& make, ValueId x, std::size_t axis, DimId start, DimId end);
  [[nodiscard]] std::optional<std::vector<std::size_t>> listed_axes(const Value* dim,
                                                                    std::size_t rank) const;

  // ---- fx_composite.cpp: ops that PyTorch itself composes of others
  Applied matmul(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied repeat_interleave(const Bound& bound, const std::vector<Wanted>& wanted,
                            const Site& site);
  Applied roll(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied conv_transpose(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  [[nodiscard]] std::optional<Shape> of_each_axis(const Value* given, std::size_t axes,
                                                  std::int64_t otherwise) const;
  Applied unflatten(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied im2col(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  std::optional<Shape> common_shape(const Shape& a, const Shape& b) const;

  // ---- fx_prims.cpp: PyTorch's own primitives
  Applied iota(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied expand_dims(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied split_dim(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied broadcast_in_dim(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied slices(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);

  // ---- fx_einsum.cpp: products over axes that letters name
  struct Term {
    ValueId value;
    std::string letters;  ///< one an axis
  };
  Applied einsum(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied tensordot(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Term summed(Maker& make, Term term, std::string_view kept);
  Term contracted(Maker& make, Term a, Term b, std::string_view kept);
  Applied named_term(Maker& make, Term term, std::string_view letters,
                     const std::vector<Wanted>& wanted);
  ValueId laid_out(Maker& make, const Term& term, std::string_view letters);
  void widen_shared(Maker& make, Term& a, Term& b);
  DimId count_along(const Term& term, std::string_view letters);

  // ---- fx_windows.cpp: elements at calculated places, and several tensors of one shape
  Applied unfold(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied as_strided(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied diagonal_scatter(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied movedim(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied broadcast(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied meshgrid(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied vector_norm(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  std::optional<ValueId> places_of(Maker& make, const Shape& sizes, const Shape& strides,
                                   std::int64_t offset);
  ValueId number_of_type(Maker& make, double value, DType dtype);

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

  // ---- fx_vllm.cpp: vLLM's targets; layer names, and symbols that must be equal
  [[nodiscard]] std::optional<std::int64_t> correction_of(const Value& correction) const;
  Applied var_mean(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied ir_norm(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied rotary(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied attention(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  Applied scaled_product(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);
  std::optional<ValueId> as_declared(ValueId value, const OperandDecl& decl, const Site& site);
  std::optional<Attribute> as_text(const Value& value);
  void make_equal(DimId from, DimId to, std::string_view target);
  [[nodiscard]] Graph without_layer_names() const;

  // ---- fx_ranks.cpp: rows that the ranks of a group share
  void find_ranks(const Expr& e);
  Applied shard_rows(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site);

  // ---- fx_emit.cpp: nodes
  /// Adds a node; checks stated types at the old counts; turns makers' literals into symbols if
  /// nothing else fits.
  Result<Results> emit(std::string_view op, const std::vector<ValueId>& operands,
                       AttributeList attributes, const std::vector<Wanted>& wanted,
                       const Site& site);
  Result<Results> try_emit(OpId op, const std::vector<ValueId>& operands,
                           const AttributeList& attributes, const std::vector<Wanted>& wanted,
                           const Site& site);
  bool symbolise_maker(ValueId value, std::size_t choice);
  Status check_stated(ValueId value, const Wanted& wanted, std::string_view op);
  /// Narrows the range of the symbol in `size`, and notes the reason; returns false if no range of
  /// a symbol expresses it.
  bool assume(Compare op, DimId size, std::int64_t bound, std::string_view why);
  bool assume_stated(ValueId value, const Wanted& wanted);
  std::optional<Shape> settled(const Type& have, const Type& stated, const Facts& facts);
  std::optional<ValueId> as_operand(const Value& value, const Site& site);
  std::optional<Attribute> as_attribute(const Value& value, AttributeKind kind);
  [[nodiscard]] std::optional<Attribute> as_any_attribute(const Value& value) const;
  std::optional<Shape> as_shape(const Value& value) const;
  std::optional<std::int64_t> as_int(const Value& value) const;
  [[nodiscard]] const Type* type_of(ValueId value) const;  ///< null: unknown, or not a value
  std::string fresh(std::string base);
  void note(std::string text) {
    once();
    report_.substitutions.push_back(std::move(text));
  }
  NameId key(std::string_view name) { return context_.strings.intern(name); }
  /// Returns a tensor with its own storage.
  [[nodiscard]] Value tensor(ValueId v);
  [[nodiscard]] Value integer(std::int64_t v);

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
  std::map<std::string, std::vector<std::string_view>> overloads_;  ///< of ATen, by name
  std::string group_;  ///< of the statement that is converted
  std::set<std::pair<std::string, std::int64_t>>
      ranks_;  ///< groups that collectives name, and sizes
  BoundNames<Value> env_;
  WordSet names_;                                  ///< every name of the dump, and those made up
  WordSet made_up_;                                ///< those made up
  std::unordered_map<std::string, int> counters_;  ///< of made-up names, by their base
  std::unordered_map<std::string, std::map<int, Wanted>> getitems_;  ///< by the name of the tuple
  std::unordered_map<std::string, std::vector<std::string>> item_keys_;  ///< the same
  mutable std::optional<WordSet>
      read_names_;                      ///< names that some expression reads, after the first query
  std::map<DimId, DimId> equal_sizes_;  ///< a size, and one that is better known
  Memory memory_;
  bool functional_ = false;  ///< the dump is functionalised: calls write nothing
  bool pure_ = false;        ///< and unknown calls have no effect either
  /// Extents of symbols, and bounds of slices of them: their order depends on the run.
  std::vector<std::pair<DimId, std::int64_t>> thresholds_;
  std::set<std::string> assumed_;  ///< ops whose writes nothing states
  std::set<ValueId> makers_, dropped_, rope_caches_, layer_names_;
  std::map<std::string, DimId, std::less<>> equal_;  ///< symbols that are another one
  Diagnostics errors_;
  Repeats<Value, Wanted> repeats_;
  std::unordered_map<std::string, TypeId> known_types_;  ///< by what states them
  Trace trace_;                                          ///< of the current statement
  bool repeatable_ = true;                               ///< see once()
  bool renamed_ = false;         ///< a value may have another name than it was bound to
  std::size_t first_value_ = 0;  ///< of the current statement
  bool unique_names_ = true;     ///< no name of the dump is bound twice
};

}  // namespace pw::fx
