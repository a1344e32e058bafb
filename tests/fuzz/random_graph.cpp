// Draws a node, infers its types, and keeps it if inference succeeds.
#include "tests/fuzz/random_graph.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "graph/compare/canonical.hpp"

namespace pw::test {
namespace {

constexpr std::int64_t kMostTokens = 12, kMostElements = 3000;
constexpr std::int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 8, 8, 12, 16, 16, 24, 32, 33};
constexpr DType kDTypes[] = {DType::b8,   DType::i8,     DType::i32,    DType::i64,
                             DType::u8,   DType::f8e4m3, DType::f8e5m2, DType::f16,
                             DType::bf16, DType::f32,    DType::f64};

bool is_index(std::string_view operand) { return operand == "ids" || operand == "positions"; }

class OneGraph {
 public:
  OneGraph(const ContextPtr& context, const std::vector<OpId>& primitives,
           const std::vector<OpId>& composed, std::uint64_t seed)
      : context_(*context),
        primitives_(primitives),
        composed_(composed),
        random_(seed),
        made_{seed, Graph(context, "random"), 1, 1, ""},
        graph_(made_.graph) {}

  RandomGraph run() {
    draw_size();
    made_.ranks = std::int64_t{1} << (once_in(3) ? 1 + below(2) : 0);
    const std::size_t wanted = 1 + below(8);
    for (std::size_t tries = 0; nodes_ < wanted && tries < 60; ++tries) add_node();
    add_outputs();
    settle_numbers(graph_);  // as in a graph that was read
    if (!graph_ops_.empty() && !once_in(4)) made_.cut = graph_ops_[below(graph_ops_.size())];
    return std::move(made_);
  }

 private:
  bool once_in(std::uint64_t n) { return random_.below(n) == 0; }
  std::size_t below(std::size_t n) { return random_.below(n); }
  template <class T>
  const T& any(const std::vector<T>& of) {
    return of[below(of.size())];
  }
  DimId constant(std::int64_t value) { return context_.dims.constant(value); }

  // ---- sizes
  /// One graph in six has no symbol.
  void draw_size() {
    made_.tokens = 1 + static_cast<std::int64_t>(below(9));
    if (once_in(6)) return;
    tokens_ = context_.dims.symbol("n");
    const std::int64_t multiple = once_in(8) ? 2 : 1;
    graph_.facts.symbols["n"] = {multiple, kMostTokens, multiple, "tokens"};
    made_.tokens = (made_.tokens + multiple - 1) / multiple * multiple;
  }
  DimId dim() {
    if (once_in(24)) return constant(0);
    if (!dims_.empty() && !once_in(3)) return any(dims_);
    dims_.push_back(constant(kExtents[below(std::size(kExtents))]));
    return dims_.back();
  }
  Shape shape() {
    Shape out;
    const std::size_t rank = below(8);  // most have two axes or one
    const std::size_t axes = rank == 0 ? 0 : rank < 3 ? 1 : rank < 6 ? 2 : rank - 3;
    for (std::size_t i = 0; i < axes; ++i)
      out.push_back(i == 0 && tokens_.valid() && !once_in(3) ? tokens_ : dim());
    return out;
  }
  /// What broadcasts against it.
  Shape beside(const Shape& shape) {
    const std::size_t left_out = once_in(2) ? 0 : below(shape.size() + 1);
    Shape out(shape.begin() + static_cast<std::ptrdiff_t>(left_out), shape.end());
    for (DimId& d : out)
      if (once_in(6)) d = constant(1);
    return out;
  }
  DType dtype() {
    if (once_in(3)) return kDTypes[below(std::size(kDTypes))];
    constexpr DType kCommon[] = {DType::bf16, DType::bf16, DType::f16, DType::f32, DType::f32};
    return kCommon[below(std::size(kCommon))];
  }
  [[nodiscard]] bool small(TypeId type) const {
    std::int64_t count = 1;
    for (DimId d : context_.types[type].shape) {
      const auto extent = context_.dims.evaluate(d, {{"n", kMostTokens}});
      if (!extent || *extent < 0 || *extent > kMostElements) return false;
      count *= *extent;
      if (count > kMostElements) return false;
    }
    return true;
  }

  // ---- a node
  void add_node() {
    const OpId op = any(composed_.empty() || !once_in(3) ? primitives_ : composed_);
    const Op& decl = context_.ops[op];
    if (decl.traits.collective && made_.ranks == 1) return;
    Env env;
    known_attributes(decl, env);
    NodeRequest request;
    request.op = op;
    std::vector<Draft> drafts = operands(decl, env);
    if (drafts.empty() && !decl.operands.empty()) return;
    std::vector<TypeId> types;
    for (const Draft& d : drafts) types.push_back(d.absent ? TypeId() : d.type);
    AttributeList given = attributes(decl, types, env);
    auto complete = complete_attributes(context_, decl, given, types);
    if (!complete) return;
    const int results = decl.results.size() == 1 && decl.results[0].variadic ? parts_ : -1;
    const auto typed = infer_types(context_, op, types, *complete, results);
    if (!typed || typed->empty()) return;
    if (!std::all_of(typed->begin(), typed->end(),
                     [&](TypeId t) { return t.valid() && t != Types::unknown() && small(t); }))
      return;
    for (const Draft& d : drafts) request.operands.push_back(value_of(d));
    request.attributes = std::move(given);
    request.result_names.assign(typed->size(), "");
    keep(request, decl);
  }
  void keep(const NodeRequest& request, const Op& decl) {
    const auto made = build_node(graph_, request);
    if (!made) return;
    ++nodes_;
    if (!decl.operands.empty()) graph_ops_.push_back(decl.name);
    for (std::size_t i = 0; i < graph_.result_count(*made); ++i)
      values_.push_back(graph_.result(*made, i));
  }

  // ---- operands
  struct Draft {
    bool absent = false, index = false;
    ValueId value;  ///< of the graph; invalid: an input of that type
    TypeId type;
  };
  ValueId value_of(const Draft& d) {
    if (d.absent || d.value.valid()) return d.value;
    constexpr InputKind kKinds[] = {InputKind::input, InputKind::weight, InputKind::buffer};
    const ValueId made = graph_.add_input(graph_.fresh_name(d.index ? "i" : "x"), d.type,
                                          kKinds[below(std::size(kKinds))]);
    if (!d.index) values_.push_back(made);
    return made;
  }

  std::vector<Draft> operands(const Op& decl, Env& env) {
    std::vector<Draft> out;
    for (const OperandDecl& operand : decl.operands) {
      const std::size_t count = operand.variadic ? 1 + below(3) : 1;
      for (std::size_t i = 0; i < count; ++i) {
        Draft d;
        if (operand.optional && once_in(2)) {
          d.absent = true;
        } else if (!draw(operand, out, env, d)) {
          return {};
        }
        out.push_back(d);
      }
    }
    return out;
  }
  bool draw(const OperandDecl& operand, const std::vector<Draft>& before, Env& env, Draft& d) {
    d.index = is_index(operand.name);
    for (int tries = 0; !d.index && !values_.empty() && tries < 8 && !once_in(6); ++tries) {
      const std::size_t recent = std::min<std::size_t>(values_.size(), 3);
      const ValueId value = once_in(2) ? any(values_) : values_[values_.size() - 1 - below(recent)];
      Env attempt = env;
      if (operand.type && !unify(context_, *operand.type, graph_.type(value), attempt)) continue;
      env = std::move(attempt);
      d.value = value;
      d.type = graph_.type(value);
      return true;
    }
    d.type = fresh_type(operand, before, env);
    return d.type.valid() && small(d.type) &&
           (!operand.type || unify(context_, *operand.type, d.type, env));
  }
  /// A type that the signature takes; what it leaves open is often that of another operand.
  TypeId fresh_type(const OperandDecl& operand, const std::vector<Draft>& before, Env& env) {
    const Type* like =
        before.empty() || before[0].absent ? nullptr : &context_.types[before[0].type];
    const DType similar = like != nullptr && !once_in(4) ? like->dtype : dtype();
    if (!operand.type || operand.type->dtype.empty())
      return context_.types.get(similar, like != nullptr ? like->shape : shape());
    const Expr& text = operand.type->dtype[0];
    if (text.kind == Expr::Kind::path && !dtype_named(text.text) && env.count(text.text) == 0)
      env.emplace(
          text.text,
          DTypeBinding{is_index(operand.name) ? (once_in(2) ? DType::i64 : DType::i32) : similar,
                       false});
    for (const Expr& d : operand.type->dims) bind(d, like, env);
    if (operand.type->any_shape) {
      const auto bound = env.find(text.text);
      const auto* known = bound == env.end() ? nullptr : std::get_if<DTypeBinding>(&bound->second);
      return context_.types.get(known != nullptr ? known->dtype : similar,
                                like != nullptr ? like->shape : shape());
    }
    const auto type = instantiate_type(context_, *operand.type, env);
    return type ? *type : TypeId();
  }
  void bind(const Expr& expr, const Type* like, Env& env) {
    if (expr.kind == Expr::Kind::star) {
      if (!expr.text.empty() && env.count(expr.text) == 0)
        env.emplace(expr.text, like != nullptr ? beside(like->shape) : shape());
      return;
    }
    if (expr.kind == Expr::Kind::path && env.count(expr.text) == 0)
      env.emplace(expr.text, expr.text == "n" && tokens_.valid() ? tokens_ : dim());
    for (const Expr& arg : expr.args) bind(arg, like, env);
  }

  // ---- attributes
  /// Numbers that operand types may speak of come first.
  void known_attributes(const Op& decl, Env& env) {
    for (const AttributeDecl& a : decl.attributes) {
      if (a.kind != AttributeKind::int_ || a.name == "end" || a.name == "start") continue;
      constexpr std::int64_t kNumbers[] = {1, 2, 2, 4, 4, 8, 16, 3};
      std::int64_t number = kNumbers[below(std::size(kNumbers))];
      if (a.name == "world") number = once_in(3) ? 2 : made_.ranks;
      env.emplace(a.name, constant(number));
    }
  }
  AttributeList attributes(const Op& decl, const std::vector<TypeId>& operands, const Env& env) {
    AttributeList out;
    const Shape* first =
        operands.empty() || !operands[0].valid() ? nullptr : &context_.types[operands[0]].shape;
    axis_ = first == nullptr || first->empty() ? 0 : below(first->size());
    for (const AttributeDecl& a : decl.attributes) {
      if (a.default_value && once_in(3) && a.kind != AttributeKind::int_) {
        if (a.kind == AttributeKind::axis && first != nullptr && !first->empty())
          axis_ = first->size() - 1;  // most defaults
        continue;
      }
      if (a.nullable && once_in(2)) continue;
      const NameId name = context_.strings.intern(a.name);
      out.emplace_back(name, attribute(a, first, env));
    }
    return out;
  }
  Attribute attribute(const AttributeDecl& a, const Shape* first, const Env& env) {
    switch (a.kind) {
      case AttributeKind::float_: {
        constexpr double kReals[] = {0, 1, -1.5, 1e-6, 0.5, 448, 3, -0.0, 1e30};
        return kReals[below(std::size(kReals))];
      }
      case AttributeKind::bool_: return once_in(2);
      case AttributeKind::str:
        return a.name == "group" ? std::string("tp") : fmt::format("layer.{}", nodes_);
      case AttributeKind::dtype: return dtype();
      case AttributeKind::axis:
        if (a.name == "dim1" && first != nullptr && !first->empty())
          return static_cast<std::int64_t>(below(first->size()));
        return static_cast<std::int64_t>(axis_);
      case AttributeKind::int_: return integer(a, first, env);
      case AttributeKind::ints:
      case AttributeKind::dims: return list(a, first);
      case AttributeKind::floats: return std::vector<double>{1.0};
      case AttributeKind::strs: return std::vector<std::string>{"x"};
    }
    return None{};
  }
  Attribute integer(const AttributeDecl& a, const Shape* first, const Env& env) {
    if (a.name == "start" || a.name == "end") return bound(a.name == "start", first);
    const auto found = env.find(a.name);
    const auto* dim = found == env.end() ? nullptr : std::get_if<DimId>(&found->second);
    return dim == nullptr ? std::int64_t{2} : context_.dims.value(*dim).value_or(2);
  }
  /// Of the axis that was drawn.
  Attribute bound(bool start, const Shape* first) {
    const DimId size = first == nullptr || first->empty() ? constant(1) : (*first)[axis_];
    const auto known = context_.dims.value(size);
    if (start && once_in(2)) return std::int64_t{0};
    if (!known) return start ? Attribute(std::int64_t{0}) : Attribute(size);
    return static_cast<std::int64_t>(below(static_cast<std::size_t>(*known) + 1));
  }
  std::vector<DimId> list(const AttributeDecl& a, const Shape* first) {
    if (a.name == "sizes") return sizes(first);
    parts_ = -1;
    if (first == nullptr) {
      const Shape drawn = shape();
      return {drawn.begin(), drawn.end()};
    }
    return once_in(2) ? factored(*first) : expanded(*first);
  }
  /// Parts of the axis that was drawn.
  std::vector<DimId> sizes(const Shape* first) {
    parts_ = 1 + static_cast<int>(below(3));
    const DimId size = first == nullptr || first->empty() ? constant(1) : (*first)[axis_];
    auto left = context_.dims.value(size);
    std::vector<DimId> out;
    for (int i = 1; left && i < parts_; ++i) {
      const auto part = static_cast<std::int64_t>(below(static_cast<std::size_t>(*left) + 1));
      out.push_back(constant(part));
      *left -= part;
    }
    out.push_back(left ? constant(*left) : size);
    parts_ = static_cast<int>(out.size());
    return out;
  }
  /// As many elements on other axes.
  std::vector<DimId> factored(const Shape& shape) {
    std::vector<DimId> out;
    for (DimId d : shape) {
      const auto extent = context_.dims.value(d);
      if (extent && *extent > 1 && *extent % 2 == 0 && once_in(2)) {
        out.push_back(constant(*extent / 2));
        out.push_back(constant(2));
      } else if (!out.empty() && once_in(3)) {
        out.back() = context_.dims.mul(out.back(), d);
      } else {
        out.push_back(d);
      }
      if (once_in(8)) out.push_back(constant(1));
    }
    return out;
  }
  std::vector<DimId> expanded(const Shape& shape) {
    std::vector<DimId> out(shape.begin(), shape.end());
    for (DimId& d : out)
      if (context_.dims.value(d) == 1 && !once_in(3)) d = dim();
    if (once_in(3)) out.insert(out.begin(), dim());
    return out;
  }

  // ---- outputs
  void add_outputs() {
    std::vector<ValueId> unread;
    for (ValueId v : values_)
      if (graph_.use_count(v) == 0 && !graph_.is_input(v)) unread.push_back(v);
    for (ValueId v : unread)
      if (unread.size() == 1 || !once_in(5)) graph_.add_output(v);
    if (!values_.empty() && (graph_.outputs().empty() || once_in(3)))
      graph_.add_output(any(values_));  // an input, a value inside, or one that is returned already
    if (once_in(4)) add_write();
  }
  void add_write() {
    for (ValueId input : graph_.inputs()) {
      for (ValueId v : values_) {
        if (v == input || graph_.type(v) != graph_.type(input) || !once_in(2)) continue;
        if (graph_.is_input(v) && once_in(2)) continue;
        return graph_.add_write(input, v);
      }
    }
  }

  Context& context_;
  const std::vector<OpId>&primitives_, &composed_;
  Random random_;
  RandomGraph made_;
  Graph& graph_;
  DimId tokens_;
  std::vector<DimId> dims_;
  std::vector<ValueId> values_;
  std::vector<std::string> graph_ops_;
  std::size_t nodes_ = 0, axis_ = 0;
  int parts_ = -1;
};

}  // namespace

GraphGenerator::GraphGenerator(ContextPtr context) : context_(std::move(context)) {
  for (const std::string& name : context_->ops.names()) {
    const OpId id = context_->ops.find(name);
    const Op& op = context_->ops[id];
    if (op.imported || op.traits.effect || (!op.has_body() && !has_kernel(op))) continue;
    names_.push_back(name);
    (op.has_body() ? composed_ : primitives_).push_back(id);
  }
}

RandomGraph GraphGenerator::graph(std::uint64_t seed) const {
  return OneGraph(context_, primitives_, composed_, seed).run();
}

}  // namespace pw::test
