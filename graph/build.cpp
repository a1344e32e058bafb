#include "graph/build.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/infer/infer.hpp"
#include "graph/list_place.hpp"
#include "graph/same_type.hpp"
#include "graph/text/text.hpp"
#include "graph/wrapped.hpp"

namespace pw {
namespace {

constexpr int kMaxExpressionDepth = 200;

std::vector<TypeId> operand_types(const Graph& graph, const std::vector<ValueId>& operands) {
  std::vector<TypeId> types;
  for (ValueId v : operands) types.push_back(v.valid() ? graph.type(v) : TypeId());
  return types;
}

/// Replaces `shape = [-1, 128]` of a view by the inferred shape.
AttributesId resolve_shape(Context& context, const Op& op, AttributesId attributes,
                           const std::vector<TypeId>& results) {
  const Attribute* shape = context.attributes.find(attributes, "shape");
  auto dims = shape ? std::get_if<std::vector<DimId>>(shape) : nullptr;
  if (!dims || !op.traits.view || results.size() != 1 || results[0] == Types::unknown())
    return attributes;
  bool hole =
      std::any_of(dims->begin(), dims->end(), [&](DimId d) { return context.dims.value(d) == -1; });
  if (!hole) return attributes;
  AttributeList list = context.attributes[attributes];
  NameId key = context.strings.intern("shape");
  for (auto& [name, value] : list)
    if (name == key) value = context.types[results[0]].shape;
  return context.attributes.intern(std::move(list));
}

std::string primitive_of(const std::string& infix) {
  if (infix == "+") return "add";
  if (infix == "-") return "sub";
  if (infix == "*") return "mul";
  if (infix == "/") return "div";
  return {};
}

bool is_literal(const Expr& e) {
  if (e.kind == Expr::Kind::negate) return is_literal(e.args.at(0));
  return e.kind == Expr::Kind::integer || e.kind == Expr::Kind::real;
}

/// Returns the dtype name that the signature declares for the operand; null if it declares none.
const std::string* declared_dtype(const Op& op, std::size_t at) {
  if (op.operands.empty()) return nullptr;
  const OperandDecl& decl = op.operands[std::min(at, op.operands.size() - 1)];
  if (!decl.type || decl.type->dtype.empty()) return nullptr;
  const Expr& dtype = decl.type->dtype.front();
  return dtype.kind == Expr::Kind::path ? &dtype.text : nullptr;
}

/// Returns the operand's dtype by the signature, if the operands built so far determine it.
std::optional<DType> asked_dtype(const Graph& graph, const Op& op,
                                 const std::vector<const Expr*>& args,
                                 const std::vector<ValueId>& operands, std::size_t at) {
  const std::string* wanted = declared_dtype(op, at);
  if (wanted == nullptr) return std::nullopt;
  if (auto fixed = dtype_named(*wanted); fixed && op.attribute(*wanted) == nullptr) return fixed;
  for (std::size_t i = 0; i < operands.size() && i < args.size(); ++i) {
    const std::string* other = is_literal(*args[i]) ? nullptr : declared_dtype(op, i);
    if (other == nullptr || *other != *wanted || !operands[i].valid()) continue;
    const TypeId type = graph.type(operands[i]);
    if (type != Types::unknown()) return graph.context().types[type].dtype;
  }
  return std::nullopt;
}

bool shares_dtype_later(const Op& op, const std::vector<const Expr*>& args, std::size_t at) {
  const std::string* wanted = declared_dtype(op, at);
  for (std::size_t i = at + 1; wanted != nullptr && i < args.size(); ++i) {
    const std::string* other = is_literal(*args[i]) ? nullptr : declared_dtype(op, i);
    if (other != nullptr && *other == *wanted) return true;
  }
  return false;
}

/// Returns true if the dtype holds the number exactly or, for a float, approximately.
bool holds(DType dtype, double number) {
  if (is_float(dtype)) return true;
  if (number != std::floor(number)) return false;
  if (dtype == DType::b8) return number == 0 || number == 1;
  const double least = dtype == DType::u8 ? 0 : -std::ldexp(1.0, 8 * size_of(dtype) - 1);
  const double above = std::ldexp(1.0, 8 * size_of(dtype) - (dtype == DType::u8 ? 0 : 1));
  return number >= least && number < above;
}

/// Builder of the numbers among the operands of a statement, as constants or extents, and of casts.
/// Numbers next to tensors of rank 0 alone take a dtype that makes nothing wider.
class Numbers {
 public:
  Numbers(Graph& graph, const Env& env, const BuildOptions& options)
      : graph_(graph), context_(graph.context()), env_(env), options_(options) {}

  Result<ValueId> value(const Expr& e);
  Result<ValueId> extent(DimId value, const Expr& e);
  Result<ValueId> cast(ValueId from, DType to, const Expr& e);
  Result<ValueId> round_scalar(ValueId value, const std::string& op,
                               const std::vector<ValueId>& operands, const Expr& e);

 private:
  [[nodiscard]] DType dtype_of(DType own) const;
  ValueId integer(std::int64_t value);
  Result<ValueId> node_of(OpId op, std::vector<ValueId> operands, std::string_view attribute,
                          Attribute value, const Expr& e);

  Graph& graph_;
  Context& context_;
  const Env& env_;
  const BuildOptions& options_;
};

/// Returns the dtype of a number next to tensors of rank 0: theirs, but not narrower than f32.
DType Numbers::dtype_of(DType own) const {
  if (!options_.scalars || own == DType::b8) return own;
  const DType tensors = *options_.scalars;
  if (tensors == DType::f64 || is_float(tensors))
    return tensors == DType::f64 ? tensors : DType::f32;
  if (own == DType::f64) return DType::f32;
  return tensors == DType::b8 ? own : tensors;
}

/// Computes a bf16 or f16 tensor of rank 0 with a number in f32, and rounds to the tensor's dtype.
Result<ValueId> Numbers::round_scalar(ValueId value, const std::string& op,
                                      const std::vector<ValueId>& operands, const Expr& e) {
  constexpr std::string_view kArithmetic[] = {"add", "sub",     "mul",    "div",
                                              "pow", "maximum", "minimum"};
  if (!options_.scalars ||
      std::find(std::begin(kArithmetic), std::end(kArithmetic), op) == std::end(kArithmetic))
    return value;
  const TypeId made = graph_.type(value);
  std::optional<DType> tensors;
  bool number = false;
  for (ValueId v : operands) {
    const NodeId maker = v.valid() ? graph_.producer(v) : NodeId();
    if (maker.valid() && graph_.op_of(maker).is_literal()) {
      number = true;
      continue;
    }
    if (!v.valid() || graph_.type(v) == Types::unknown()) return value;
    const DType dtype = context_.types[graph_.type(v)].dtype;
    tensors = tensors ? promote(*tensors, false, dtype, false) : dtype;
  }
  if (!number || !tensors || !is_float(*tensors) || made == Types::unknown() ||
      size_of(*tensors) >= size_of(context_.types[made].dtype))
    return value;
  return cast(value, *tensors, e);
}

/// Wraps an integer to the small integer dtype of the tensors that it is combined with, as PyTorch
/// does.
ValueId Numbers::integer(std::int64_t value) {
  const DType dtype = dtype_of(DType::i64);
  if (is_integer(dtype) && size_of(dtype) <= 4) value = static_cast<std::int32_t>(value);
  return add_constant(graph_, wrapped(static_cast<double>(value), dtype), dtype, options_.like);
}

Result<ValueId> Numbers::value(const Expr& e) {
  Attribute value = PW_TRY(evaluate(context_, &graph_, e, env_));
  if (auto i = std::get_if<std::int64_t>(&value)) {
    if (dtype_of(DType::i64) != DType::i64 || constant_holds(*i)) return integer(*i);
    return extent(context_.dims.constant(*i), e);
  }
  if (auto x = std::get_if<double>(&value))
    return add_constant(graph_, *x, dtype_of(DType::f64), options_.like);
  if (auto b = std::get_if<bool>(&value))
    return add_constant(graph_, *b ? 1 : 0, dtype_of(DType::b8), options_.like);
  if (std::holds_alternative<None>(value)) return ValueId();
  if (auto d = std::get_if<DimId>(&value)) return extent(*d, e);
  return fail(e.span, "PW0321", "`" + print(e) + "` is neither a tensor nor a number");
}

/// Builds a number that is known only at run time, or that no constant holds, as an i64 of rank 0.
/// Next to tensors of rank 0 that are narrower than f32 it would determine how the result is
/// rounded.
Result<ValueId> Numbers::extent(DimId value, const Expr& e) {
  const OpId op = context_.ops.find(Primitive::extent);
  const DType type = dtype_of(DType::i64);
  if (!op.valid() || (options_.scalars && is_float(*options_.scalars)))
    return fail(e.span, "PW0321",
                "`" + print(e) + "` is symbolic; an operand that is a number must be constant");
  Result<ValueId> made = node_of(op, {}, "value", value, e);
  return !made || type == DType::i64 ? made : cast(*made, type, e);
}

/// Returns the result of a new node with one attribute.
Result<ValueId> Numbers::node_of(OpId op, std::vector<ValueId> operands, std::string_view attribute,
                                 Attribute value, const Expr& e) {
  NodeRequest request{op,
                      std::move(operands),
                      {{context_.strings.intern(attribute), std::move(value)}},
                      {""},
                      {},
                      options_.group,
                      options_.source,
                      e.span,
                      {},
                      options_.like};
  NodeId node = PW_TRY(build_node(graph_, request));
  return graph_.result(node);
}

Result<ValueId> Numbers::cast(ValueId from, DType to, const Expr& e) {
  OpId op = context_.ops.find(Primitive::cast);
  if (!op.valid())
    return fail(e.span, "PW0320", "the op library is not loaded: there is no `cast`");
  return node_of(op, {from}, "dtype", to, e);
}

class Builder {
 public:
  Builder(Graph& graph, Env& env, const BuildOptions& options)
      : graph_(graph), context_(graph.context()), env_(env), options_(options) {}

  Status statement(const Statement& s);

 private:
  using Kind = Expr::Kind;
  using Values = std::vector<ValueId>;

  Result<ValueId> operand(const Expr& e, int depth);
  std::optional<Result<ValueId>> chosen_side(const Expr& e, int depth);
  Result<ValueId> named(const Expr& e);
  Result<ValueId> element(const Expr& e);
  Result<Values> spread(const Expr& e, int depth);
  void lists_in(const Expr& e, std::map<std::string, Values>& out) const;
  Result<ValueId> literal(const Expr& e, const Op& op, std::size_t at, std::optional<DType> wanted,
                          int depth);
  Result<ValueId> cast(const Expr& e, DType to, int depth);
  Result<Values> call(const Expr& e, const std::vector<Binder>& binders, int depth);
  Status name_results(const std::vector<Binder>& binders, NodeRequest& request);
  Result<Values> apply(const std::string& op, const Expr& e, const std::vector<const Expr*>& args,
                       const std::vector<Binder>& binders, int depth);
  Result<AttributeList> attributes(const Expr& e, const Op& op);
  [[nodiscard]] std::optional<DType> cast_target(const std::string& name) const;
  [[nodiscard]] std::string op_name(const Expr& e) const;
  [[nodiscard]] tl::unexpected<Diagnostics> error(const Expr& e, std::string_view code,
                                                  std::string message,
                                                  std::string help = {}) const {
    return fail(e.span, code, std::move(message), std::move(help));
  }

  Graph& graph_;
  Context& context_;
  Env& env_;
  const BuildOptions& options_;
  Numbers numbers_{graph_, env_, options_};
};

std::optional<DType> Builder::cast_target(const std::string& name) const {
  if (auto it = env_.find(name); it != env_.end()) {
    if (auto d = std::get_if<DTypeBinding>(&it->second)) return d->dtype;
    if (auto a = std::get_if<Attribute>(&it->second))
      if (auto d = std::get_if<DType>(a)) return *d;
    return std::nullopt;
  }
  return dtype_named(name);
}

/// Resolves a table cell to the op that it names.
std::string Builder::op_name(const Expr& e) const {
  if (auto it = env_.find(e.text); it != env_.end())
    if (auto a = std::get_if<Attribute>(&it->second))
      if (auto text = std::get_if<std::string>(a)) return *text;
  return e.text;
}

Result<ValueId> Builder::named(const Expr& e) {
  auto it = env_.find(e.text);
  if (it != env_.end()) {
    if (auto v = std::get_if<ValueId>(&it->second)) return *v;
    if (std::holds_alternative<Absent>(it->second)) return ValueId();
  }
  return numbers_.value(e);
}

/// Evaluates `xs[1]` of a list of tensors or of a list of numbers.
Result<ValueId> Builder::element(const Expr& e) {
  const auto it = e.args[0].kind == Kind::path ? env_.find(e.args[0].text) : env_.end();
  const auto* list = it == env_.end() ? nullptr : std::get_if<Values>(&it->second);
  if (list == nullptr) return numbers_.value(e);
  Attribute at = PW_TRY(evaluate(context_, &graph_, e.args[1], env_));
  if (const auto place = place_in(list->size(), at)) return (*list)[*place];
  return error(e, "PW0326", fmt::format("`{}` is outside a list of {}", print(e), list->size()));
}

void Builder::lists_in(const Expr& e, std::map<std::string, Values>& out) const {
  if (e.kind == Kind::path)
    if (auto it = env_.find(e.text); it != env_.end())
      if (auto list = std::get_if<Values>(&it->second)) out.emplace(e.text, *list);
  for (const Expr& arg : e.args)
    if (arg.kind != Kind::spread) lists_in(arg, out);
}

/// Expands `xs...` to the list; builds `relu(x)...` once for each element of the lists in it.
Result<Builder::Values> Builder::spread(const Expr& e, int depth) {
  const Expr& inner = e.args.at(0);
  std::map<std::string, Values> lists;
  lists_in(inner, lists);
  if (lists.empty()) return error(e, "PW0326", "`" + print(e) + "` is not a list of tensors");
  if (inner.kind == Kind::path) return lists.begin()->second;
  Values out;
  const std::size_t size = lists.begin()->second.size();
  for (const auto& [name, list] : lists)
    if (list.size() != size)
      return error(e, "PW0326",
                   fmt::format("`{}` expands lists of {} and of {}", print(e), size, list.size()));
  std::optional<Diagnostics> failed;
  for (std::size_t i = 0; i < size && !failed; ++i) {
    for (const auto& [name, list] : lists) env_.insert_or_assign(name, Binding(list[i]));
    if (Result<ValueId> v = operand(inner, depth + 1))
      out.push_back(*v);
    else
      failed = std::move(v.error());
  }
  for (const auto& [name, list] : lists) env_.insert_or_assign(name, Binding(list));
  if (failed) return tl::unexpected<Diagnostics>(std::move(*failed));
  return out;
}

Result<ValueId> Builder::cast(const Expr& e, DType to, int depth) {
  if (e.args.size() != 1)
    return error(e, "PW0322",
                 fmt::format("the cast `{}(…)` takes one operand, not {}", e.text, e.args.size()));
  Result<ValueId> from = operand(e.args[0], depth + 1);
  if (!from || !from->valid()) return from;
  TypeId type = graph_.type(*from);
  if (type != Types::unknown() && context_.types[type].dtype == to)
    return from;  // a cast to the same dtype does nothing
  return numbers_.cast(*from, to, e);
}

/// Builds only the chosen side of `select(wide, a, b)` if `wide` is a bool attribute.
std::optional<Result<ValueId>> Builder::chosen_side(const Expr& e, int depth) {
  if (e.kind != Kind::call || e.text != "select" || e.args.size() != 3) return std::nullopt;
  const Expr& mask = e.args[0];
  auto it = mask.kind == Kind::path ? env_.find(mask.text) : env_.end();
  const auto* attribute = it == env_.end() ? nullptr : std::get_if<Attribute>(&it->second);
  const auto* first = attribute == nullptr ? nullptr : std::get_if<bool>(attribute);
  if (first == nullptr) return std::nullopt;
  return operand(e.args[*first ? 1 : 2], depth + 1);
}

Result<ValueId> Builder::operand(const Expr& e, int depth) {
  if (depth > kMaxExpressionDepth) return error(e, "PW0323", "the expression is nested too deeply");
  if (e.kind == Kind::none) return ValueId();
  if (e.kind == Kind::path) return named(e);
  if (e.kind == Kind::index) return element(e);
  bool is_call = e.kind == Kind::call || e.kind == Kind::negate ||
                 (e.kind == Kind::binary && !primitive_of(e.text).empty());
  if (!is_call) return numbers_.value(e);
  if (e.kind == Kind::negate &&
      (e.args.at(0).kind == Kind::integer || e.args.at(0).kind == Kind::real))
    return numbers_.value(e);
  if (e.kind == Kind::call && !cast_target(e.text) && !context_.ops.find(op_name(e)).valid()) {
    if (e.text == "size" || e.text == "rank" || e.text == "count" || e.text == "min" ||
        e.text == "max")
      return numbers_.value(e);
  }
  if (e.kind == Kind::binary) {  // `hd / 2` between dims and numbers is a number, not a node
    auto tensor_free = [&](const Expr& x, auto&& self) -> bool {
      if (x.kind == Kind::path) {
        auto it = env_.find(x.text);
        return it != env_.end() && !std::holds_alternative<ValueId>(it->second) &&
               !std::holds_alternative<Absent>(it->second);
      }
      if (x.kind == Kind::call) return x.text == "size" || x.text == "rank" || x.text == "count";
      return std::all_of(x.args.begin(), x.args.end(),
                         [&](const Expr& y) { return self(y, self); });
    };
    if (tensor_free(e, tensor_free)) return numbers_.value(e);
  }
  if (std::optional<Result<ValueId>> chosen = chosen_side(e, depth)) return std::move(*chosen);
  Result<Values> results = call(e, {}, depth + 1);
  if (!results) return forward(results);
  if (results->size() != 1)
    return error(
        e, "PW0324",
        fmt::format("`{}` has {} results; an operand is one value", e.text, results->size()),
        "bind its results by name in a separate statement");
  return results->front();
}

Result<AttributeList> Builder::attributes(const Expr& e, const Op& op) {
  AttributeList list;
  auto set = [&](const std::string& name, const Attribute& value) {
    NameId key = context_.strings.intern(name);
    auto it = std::find_if(list.begin(), list.end(), [&](const auto& a) { return a.first == key; });
    if (it == list.end())
      list.push_back({key, value});
    else
      it->second = value;
  };
  if (e.open) {
    auto it = options_.open_attributes.find(op.name);
    if (it == options_.open_attributes.end())
      return error(e, "PW0325",
                   "`..` copies the attributes of the one node on the left side with op `" +
                       op.name + "`, but there is none");
    list = context_.attributes[it->second];
  }
  for (const AttributeArg& arg : e.attributes) {
    Expr short_form;
    short_form.kind = Kind::path;
    short_form.text = arg.name;
    short_form.span = arg.span;
    set(arg.name,
        PW_TRY(evaluate(context_, &graph_, arg.value.empty() ? short_form : arg.value[0], env_)));
  }
  return list;
}

/// Builds a literal of the dtype that the signature requires: that of `s: f32[]`, or for `s: T[]`
/// the one that the other operands give T.
Result<ValueId> Builder::literal(const Expr& e, const Op& op, std::size_t at,
                                 std::optional<DType> wanted, int depth) {
  const auto value = evaluate(context_, &graph_, e, env_);
  const auto* integer = value ? std::get_if<std::int64_t>(&*value) : nullptr;
  const auto* real = value ? std::get_if<double>(&*value) : nullptr;
  if (!wanted || (integer == nullptr && real == nullptr)) return operand(e, depth);
  if (integer != nullptr && *wanted == DType::i64 && !constant_holds(*integer))
    return numbers_.extent(context_.dims.constant(*integer), e);
  const double number = integer != nullptr ? static_cast<double>(*integer) : *real;
  if (holds(*wanted, number)) return add_constant(graph_, number, *wanted, options_.like);
  return error(e, "PW0336",
               fmt::format("`{}` is not a value of {}, the dtype of operand `{}` of op `{}` here",
                           print(e), pw::name(*wanted),
                           op.operands[std::min(at, op.operands.size() - 1)].name, op.name),
               "write a number of that dtype, or cast the other operands");
}

Status Builder::name_results(const std::vector<Binder>& binders, NodeRequest& request) {
  for (const Binder& b : binders) {
    if (b.spread) continue;
    request.result_names.push_back(b.name == "_" ? "" : options_.name_prefix + b.name);
    TypeId stated = Types::unknown();
    if (!b.type.empty() && !b.type[0].any_shape) {
      stated = PW_TRY(instantiate_type(context_, b.type[0], env_));
    }
    request.stated.push_back(stated);
  }
  return {};
}

Result<Builder::Values> Builder::apply(const std::string& name, const Expr& e,
                                       const std::vector<const Expr*>& args,
                                       const std::vector<Binder>& binders, int depth) {
  OpId op_id = context_.ops.find(name);
  if (!op_id.valid()) {
    std::string near = nearest(name, context_.ops.names());
    return error(e, "PW0320", "unknown op `" + name + "`",
                 near.empty() ? "declare it: op " + name + "(x: T[*s]) -> T[*s]"
                              : "did you mean `" + near + "`?");
  }
  NodeRequest request;
  request.op = op_id;
  const Op op = context_.ops[op_id];  // copied: building an operand may declare ops
  std::vector<std::size_t> waiting;   // literals whose dtype a later operand gives
  for (const Expr* arg : args) {
    if (const std::size_t at = request.operands.size(); is_literal(*arg) && arg == args[at]) {
      const std::optional<DType> wanted = asked_dtype(graph_, op, args, request.operands, at);
      const bool waits = !wanted && shares_dtype_later(op, args, at);
      if (waits) waiting.push_back(at);
      ValueId v =
          PW_TRY(waits ? Result<ValueId>(ValueId()) : literal(*arg, op, at, wanted, depth + 1));
      request.operands.push_back(v);
      continue;
    }
    if (arg->kind == Kind::spread) {
      Values list = PW_TRY(spread(*arg, depth));
      request.operands.insert(request.operands.end(), list.begin(), list.end());
      continue;
    }
    ValueId v = PW_TRY(operand(*arg, depth + 1));
    request.operands.push_back(v);
  }
  for (std::size_t at : waiting) {
    const std::optional<DType> wanted = asked_dtype(graph_, op, args, request.operands, at);
    ValueId v = PW_TRY(literal(*args[at], op, at, wanted, depth + 1));
    request.operands[at] = v;
  }
  AttributeList list = PW_TRY(attributes(e, op));
  request.attributes = std::move(list);
  PW_TRY(name_results(binders, request));
  if (binders.empty() && context_.ops[op_id].imported) request.result_names.assign(1, "");
  request.group = options_.group;
  request.source = options_.source;
  request.span = e.span;
  request.like = options_.like;
  NodeId node = PW_TRY(build_node(graph_, request));
  Values results;
  for (std::size_t i = 0; i < graph_.result_count(node); ++i)
    results.push_back(graph_.result(node, i));
  if (options_.scalars && results.size() == 1) {
    ValueId rounded = PW_TRY(numbers_.round_scalar(results[0], name, request.operands, e));
    results[0] = rounded;
  }
  return results;
}

Result<Builder::Values> Builder::call(const Expr& e, const std::vector<Binder>& binders,
                                      int depth) {
  if (depth > kMaxExpressionDepth) return error(e, "PW0323", "the expression is nested too deeply");
  std::vector<const Expr*> args;
  for (const Expr& arg : e.args) args.push_back(&arg);
  if (e.kind == Kind::negate) return apply("neg", e, args, binders, depth);
  if (e.kind == Kind::binary) return apply(primitive_of(e.text), e, args, binders, depth);
  if (auto to = cast_target(e.text); to && !context_.ops.find(e.text).valid()) {
    ValueId v = PW_TRY(cast(e, *to, depth));
    return Values{v};
  }
  return apply(op_name(e), e, args, binders, depth);
}

Status Builder::statement(const Statement& s) {
  const Expr& e = s.value;
  if (s.many || e.kind == Kind::fuse)
    return error(e, "PW0327", "`" + print(s) + "` cannot be built as a graph statement");
  bool is_call = e.kind == Kind::call || e.kind == Kind::negate ||
                 (e.kind == Kind::binary && !primitive_of(e.text).empty());
  Values results;
  std::size_t before = graph_.node_bound();
  if (e.kind == Kind::spread) {
    Values built = PW_TRY(spread(e, 0));
    results = std::move(built);
  } else if (std::optional<Result<ValueId>> chosen = chosen_side(e, 0)) {
    if (!*chosen) return forward(*chosen);
    results.push_back(**chosen);
  } else if (is_call) {
    Values built = PW_TRY(call(e, s.binders, 0));
    results = std::move(built);
  } else {
    ValueId v = PW_TRY(operand(e, 0));
    results.push_back(v);
  }
  bool spread =
      std::any_of(s.binders.begin(), s.binders.end(), [](const Binder& b) { return b.spread; });
  if (spread && s.binders.size() == 1) {
    env_.insert_or_assign(s.binders[0].name, results);
    return {};
  }
  if (spread || s.binders.size() != results.size())
    return error(e, "PW0328",
                 fmt::format("`{}` has {} result{}, but {} name{} bound", print(e), results.size(),
                             results.size() == 1 ? "" : "s", s.binders.size(),
                             s.binders.size() == 1 ? " is" : "s are"));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Binder& b = s.binders[i];
    if (b.name == "_") continue;
    bool fresh = results[i].valid() && !graph_.is_input(results[i]) &&
                 graph_.producer(results[i]).index >= before;
    std::string wanted = options_.name_prefix + b.name;
    if (fresh && !options_.like.valid() && graph_.value_name(results[i]) != wanted &&
        graph_.value_name(results[i]).substr(0, wanted.size()) != wanted)
      graph_.rename(results[i], wanted);
    if (results[i].valid())
      env_.insert_or_assign(b.name, results[i]);
    else
      env_.insert_or_assign(b.name, Absent{});
  }
  return {};
}

}  // namespace

ValueId add_constant(Graph& graph, double value, DType dtype, NodeId like) {
  Context& context = graph.context();
  OpId op = context.ops.find(Primitive::constant);
  if (!op.valid()) {
    Op decl;
    decl.name = "constant";
    decl.attributes = {{"value", {}, AttributeKind::float_, false, {}},
                       {"dtype", {}, AttributeKind::dtype, false, {}}};
    TypeExpr type;
    Expr dtype_name;
    dtype_name.kind = Expr::Kind::path;
    dtype_name.text = "dtype";
    type.dtype.push_back(dtype_name);
    type.any_shape = false;
    decl.results = {{"", {}, false, type, {}}};
    op = *context.ops.declare(decl);
  }
  NodeSpec spec;
  spec.op = op;
  spec.attributes = context.attributes.intern(
      {{context.strings.intern("dtype"), dtype}, {context.strings.intern("value"), value}});
  const TypeId type = context.types.get(dtype, {});
  if (like.valid()) return graph.result(graph.add_node(op, {}, spec.attributes, {&type, 1}, like));
  spec.results = {{type, graph.fresh_name("c")}};
  return graph.result(graph.add_node(spec));
}

Result<NodeId> build_node(Graph& graph, const NodeRequest& request) {
  Context& context = graph.context();
  const Op& op = context.ops[request.op];
  std::vector<TypeId> types = operand_types(graph, request.operands);
  AttributesId attributes =
      PW_TRY(complete_attributes(context, op, request.attributes, types, request.span));
  std::vector<TypeId> results =
      PW_TRY(infer_types(context, graph.facts, request.op, types, attributes,
                         static_cast<int>(request.result_names.size()), request.span));
  for (std::size_t i = 0; i < results.size() && i < request.stated.size(); ++i) {
    TypeId stated = request.stated[i];
    if (stated == Types::unknown() || !stated.valid() || stated == results[i]) continue;
    if (results[i] != Types::unknown() && !same_type(context, stated, results[i], graph.facts))
      return fail(
          request.span, "PW0329",
          fmt::format("`{}` is declared as {}, but `{}` gives {}",
                      i < request.result_names.size() ? request.result_names[i] : std::to_string(i),
                      context.types.print(stated), context.ops[request.op].name,
                      context.types.print(results[i])));
    results[i] = stated;
  }
  const AttributesId resolved =
      resolve_shape(context, context.ops[request.op], attributes, results);
  if (request.like.valid())
    return graph.add_node(request.op, request.operands, resolved, results, request.like);
  NodeSpec spec;
  spec.op = request.op;
  spec.operands = request.operands;
  spec.attributes = resolved;
  for (std::size_t i = 0; i < results.size(); ++i)
    spec.results.push_back(
        {results[i], i < request.result_names.size() ? request.result_names[i] : ""});
  spec.group = request.group;
  spec.source = request.source;
  spec.name = request.name;
  return graph.add_node(spec);
}

Status build_statement(Graph& graph, const Statement& statement, Env& env,
                       const BuildOptions& options) {
  return Builder(graph, env, options).statement(statement);
}

Status build_statements(Graph& graph, std::span<const Statement> statements, Env& env,
                        const BuildOptions& options) {
  for (const Statement& s : statements)
    if (auto built = build_statement(graph, s, env, options); !built) return built;
  return {};
}

}  // namespace pw
