#include <algorithm>
#include <iterator>
#include <set>

#include "base/try.hpp"
#include "dsl/build/declare_op.hpp"
#include "dsl/dsl.hpp"
#include "dsl/editing/rename_items.hpp"
#include "dsl/same_op.hpp"
#include "dsl/syntax/graph_header.hpp"
#include "dsl/syntax/plain_graph.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/token.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/compare/canonical.hpp"
#include "graph/foreign.hpp"
#include "graph/infer/symbol_fact.hpp"
#include "graph/passes/writes.hpp"

namespace pw {
namespace {

class GraphBuilder {
 public:
  GraphBuilder(const ContextPtr& context, const ast::GraphItem& item)
      : context_(context), item_(item), graph_(context, item.name.empty() ? "graph" : item.name) {}

  GraphHeader header() {
    declare_all();
    return {std::move(graph_), std::move(env_), imported_, std::move(out_)};
  }

  Result<Graph> run() {
    declare_all();
    for (const ast::GraphItem::Input& input : item_.inputs) add(input);
    for (const ast::GraphItem::Node& node : item_.nodes) add(node);
    written_nodes_ = graph_.node_bound();
    for (const auto& [name, span] : item_.outputs) output(name, span);
    for (const ast::GraphItem::Write& w : item_.writes) write(w);
    if (item_.outputs.empty() && item_.writes.empty())
      out_.push_back(
          error_at(item_.span, "PW0475", "this graph has no outputs", "end it with `out name`"));
    if (!out_.empty()) return tl::unexpected<Diagnostics>(std::move(out_));
    if (imported_) PW_TRY(refine_imported(graph_));
    for (WriteProblem& p : declare_writes(graph_))
      out_.push_back(error_at(statement_of(p.node), kUndeclaredWrite, std::move(p.message),
                              std::move(p.help)));
    if (!out_.empty()) return tl::unexpected<Diagnostics>(std::move(out_));
    settle_numbers(graph_);
    graph_.settle();
    return std::move(graph_);
  }

  void declare_all() {
    const NewNames own = own_names();
    for (ast::OpItem op : item_.ops) {
      if (!op.imported) rename_callees(op, own);
      declare(op);
    }
    for (const auto& [name, called] : own) env_.insert_or_assign(name, Attribute(called));
    check_bodies(*context_, declared_, out_);
    symbols();
  }

  /// Declares an op that the graph's text declares unknown. If it is known by now, it has another
  /// name until the graph is read.
  void declare(const ast::OpItem& item) {
    if (!item.imported) {
      if (OpId id = declare_op(*context_, item, out_, true); id.valid()) declared_.push_back(id);
      return;
    }
    auto op = lower_op(*context_, item, out_);
    if (!op) return;
    std::string called;
    imported_ = true;
    op->local = true;
    if (auto id = declare_imported(*context_, std::move(*op), &called); !id)
      append(out_, std::move(id.error()));
    else if (called != item.name)
      env_.insert_or_assign(item.name, Attribute(called));
  }

 private:
  /// Returns new names for ops of the text that differ from the library's op of the same name.
  NewNames own_names() {
    NewNames out;
    for (const ast::OpItem& item : item_.ops) {
      const OpId known = context_->ops.find(item.name);
      if (item.imported || !known.valid() || !is_in_library(*context_, context_->ops[known].span))
        continue;
      Diagnostics wrong;  // declaring reports them
      const std::optional<Op> op = lower_op(*context_, item, wrong);
      if (op && !says_the_same(context_->ops[known], *op))
        out.emplace(item.name, name_beside_library(*context_, graph_.name, *op));
    }
    return out;
  }

  /// Declares every dim named in a type as a symbol; `symbol` lines add facts.
  void symbols() {
    for (const ast::GraphItem::Input& input : item_.inputs) symbols_of(input.type);
    for (const ast::GraphItem::Node& node : item_.nodes) {
      for (const Binder& binder : node.statement.binders) {
        for (const TypeExpr& type : binder.type) symbols_of(type);
      }
    }
    std::set<std::string> stated;
    for (const auto& [name, fact] : item_.symbols) {
      symbol(name);
      const bool again = !stated.insert(name).second;
      if (again)
        out_.push_back(error_at(line_of(name, again), "PW0480",
                                "a second fact of " + in_ticks(name),
                                "write all facts about a symbol on one line"));
      else if (const auto wrong = problem_of(graph_.facts, name, fact))
        out_.push_back(error_at(line_of(name, again), std::string(wrong->code),
                                in_ticks(name) + ": " + wrong->message, wrong->help));
      graph_.facts.symbols.insert_or_assign(name, fact);
    }
  }

  /// Returns the place of a symbol's first declaration, or of its repetition.
  Span line_of(const std::string& name, bool again) const {
    const Lexed lexed = lex(context_->sources.text(item_.span.source), item_.span.source);
    for (std::size_t i = 0; i + 1 < lexed.tokens.size(); ++i) {
      const Token &word = lexed.tokens[i], &next = lexed.tokens[i + 1];
      const Span span{item_.span.source, next.begin, next.end()};
      if (word.kind != Tok::symbol || word.begin < item_.span.begin) continue;
      if (context_->sources.text(span) != name && context_->sources.text(span) != in_ticks(name))
        continue;
      if (!again) return span;
      again = false;
    }
    return item_.span;
  }

  void symbols_of(const TypeExpr& type) {
    visit_type(type, [&](const Occurrence& o) {
      if (o.place == Place::dim) symbol(std::string(o.name));
    });
  }

  void symbol(const std::string& name) {
    env_.insert_or_assign(name, context_->dims.symbol(name));
    graph_.facts.symbols.try_emplace(name);
  }

  bool claim(const std::string& name, Span span) {
    if (name == "_") return true;
    if (names_.insert(name).second && !graph_.facts.symbols.contains(name)) return true;
    const bool symbol = graph_.facts.symbols.contains(name);
    out_.push_back(error_at(
        span, "PW0471",
        symbol ? in_ticks(name) + " is a symbol of a dim" : in_ticks(name) + " is bound twice",
        "rename the value"));
    return false;
  }

  void add(const ast::GraphItem::Input& input) {
    if (!claim(input.name, input.span)) return poison(input.name);
    const std::optional<InputKind> kind = kind_named(input.kind);
    if (!kind) {
      out_.push_back(
          error_at(input.span, "PW0472",
                   "an input is a weight, a buffer, or neither, not " + in_ticks(input.kind)));
      return poison(input.name);
    }
    const bool none = input.type.any_shape && input.type.dtype.empty();  // `?`
    if (!none && (input.type.any_shape || input.type.dtype.empty())) {
      out_.push_back(error_at(input.span, "PW0473",
                              "input " + in_ticks(input.name) + " needs a complete type",
                              "write `" + input.name + ": bf16[n, 64]`, or `?` if it is unknown"));
      return poison(input.name);
    }
    auto type =
        none ? Result<TypeId>(Types::unknown()) : instantiate_type(*context_, input.type, env_);
    if (!type) {
      append(out_, std::move(type.error()));
      return poison(input.name);
    }
    const ValueId value = graph_.add_input(input.name, *type, *kind);
    for (const std::string& over : input.replicated) graph_.declare_replicated(value, over);
    env_.insert_or_assign(input.name, value);
  }

  static std::optional<InputKind> kind_named(const std::string& word) {
    for (InputKind kind : {InputKind::input, InputKind::weight, InputKind::buffer}) {
      if (word == name(kind)) return kind;
    }
    if (word.empty()) return InputKind::input;
    return {};
  }

  void add(const ast::GraphItem::Node& node) {
    const Statement& s = node.statement;
    bool sound = !reads_poisoned(s);
    for (const Binder& binder : s.binders) sound = claim(binder.name, binder.span) && sound;
    if (sound) {
      BuildOptions options;
      options.group = node.group;
      options.source = node.source;
      statements_.emplace_back(graph_.node_bound(), s.span);
      auto built = build_statement(graph_, s, env_, options);
      if (built) return;
      append(out_, std::move(built.error()));
    }
    for (const Binder& binder : s.binders) poison(binder.name);
  }

  /// Returns the value; null if it does not exist, which is reported, or could not be built.
  const ValueId* value_named(const std::string& name, Span span, const std::string& what) {
    if (poisoned_.contains(name)) return nullptr;
    const auto it = env_.find(name);
    const ValueId* value = it == env_.end() ? nullptr : std::get_if<ValueId>(&it->second);
    if (value != nullptr) return value;
    std::vector<std::string> names(names_.begin(), names_.end());
    out_.push_back(error_at(span, "PW0474", what + in_ticks(name) + " is not a value of this graph",
                            did_you_mean(name, names)));
    return nullptr;
  }

  void output(const std::string& name, Span span) {
    if (const ValueId* value = value_named(name, span, "output ")) graph_.add_output(*value);
  }

  void write(const ast::GraphItem::Write& w) {
    const ValueId* input = value_named(w.input, w.span, "");
    const ValueId* value = value_named(w.value, w.value_span, "");
    if (input == nullptr || value == nullptr) return;
    const std::vector<ValueId>& written = graph_.written_inputs();
    const char* why = !graph_.is_input(*input) ? " is not an input, so it cannot be written back"
                      : std::find(written.begin(), written.end(), *input) != written.end()
                          ? " is written twice"
                      : graph_.type(*input) != graph_.type(*value)
                          ? " has a different type than the value written to it"
                          : nullptr;
    if (why == nullptr)
      graph_.add_write(*input, *value);
    else
      out_.push_back(error_at(w.span, "PW0479", in_ticks(w.input) + why,
                              "name an input, and the value that it holds afterwards"));
  }

  /// Returns the statement of a node; the graph, for a node that refinement made of an unknown op.
  [[nodiscard]] Span statement_of(NodeId node) const {
    const auto next = std::upper_bound(
        statements_.begin(), statements_.end(), node.index,
        [](std::size_t index, const auto& statement) { return index < statement.first; });
    const bool written = next != statements_.begin() && node.index < written_nodes_;
    return written ? std::prev(next)->second : item_.span;
  }

  void poison(const std::string& name) { poisoned_.insert(name); }

  /// Returns true for a statement that reads an unbuilt value. It is skipped, since its own message
  /// would only repeat the first.
  [[nodiscard]] bool reads_poisoned(const Statement& s) const {
    bool found = false;
    visit_operand(s.value, [&](const Occurrence& o) {
      found = found || poisoned_.contains(std::string(o.name));
    });
    return found;
  }

  ContextPtr context_;
  const ast::GraphItem& item_;
  Graph graph_;
  Env env_;
  std::set<std::string> names_, poisoned_;
  std::vector<OpId> declared_;                            ///< ops of the graph's own text
  std::vector<std::pair<std::size_t, Span>> statements_;  ///< by the first node of each
  std::size_t written_nodes_ = 0;                         ///< nodes after these were not written
  bool imported_ = false;                                 ///< the text declares an op unknown
  Diagnostics out_;
};

bool is_graph(const ast::Item& item) { return std::holds_alternative<ast::GraphItem>(item); }

const ast::GraphItem* only_graph(const ast::File& file, Diagnostics& out) {
  const ast::GraphItem* graph = nullptr;
  if (file.items.size() > 1 && std::ranges::none_of(file.items, is_graph)) {
    const Span first = std::visit([](const auto& i) { return i.span; }, file.items.front());
    out.push_back(error_at(first, "PW0476", "these are rules, but a graph is expected",
                           "pass rules with -r; a .pwg file contains one graph"));
    return nullptr;
  }
  for (const ast::Item& item : file.items) {
    const auto* found = std::get_if<ast::GraphItem>(&item);
    if (found == nullptr) {
      const Span span = std::visit([](const auto& i) { return i.span; }, item);
      out.push_back(error_at(span, "PW0476",
                             "a .pwg file contains one graph, and this is not a graph",
                             "move rules and tests to a .pwr file"));
    } else if (graph != nullptr) {
      out.push_back(
          error_at(found->span, "PW0476", "a .pwg file contains one graph, and this is another"));
    } else {
      graph = found;
    }
  }
  if (graph == nullptr && out.empty())
    out.push_back(error_at({file.source, 0, 0}, "PW0477", "this text does not contain a graph",
                           "write `graph name { in x: bf16[n, 64] … out y }`"));
  return graph;
}

}  // namespace

GraphHeader build_header(const ContextPtr& context, const ast::GraphItem& item) {
  return GraphBuilder(context, item).header();
}

Result<Graph> build_graph(const ContextPtr& context, const ast::GraphItem& item) {
  return GraphBuilder(context, item).run();
}

Result<Graph> parse_graph(const ContextPtr& context, std::string_view text,
                          const std::string& file) {
  const SourceId source = context->sources.add(file, std::string(text));
  if (auto graph = read_plain_graph(context, context->sources.text(source), source))
    return std::move(*graph);
  return parse_graph(context, source);
}

Result<Graph> parse_graph(const ContextPtr& context, SourceId source) {
  auto tree = PW_TRY(parse_file(context->sources, source));
  Diagnostics out;
  const ast::GraphItem* item = only_graph(tree, out);
  if (!out.empty()) return tl::unexpected<Diagnostics>(std::move(out));
  return build_graph(context, *item);
}

Result<Op> parse_op(Context& context, std::string_view text) {
  const SourceId source = context.sources.add("op declaration", std::string(text));
  auto tree = PW_TRY(parse_file(context.sources, source));
  const auto* item =
      tree.items.size() == 1 ? std::get_if<ast::OpItem>(&tree.items.front()) : nullptr;
  if (item == nullptr)
    return fail({source, 0, static_cast<std::uint32_t>(text.size())}, "PW0478",
                "this is not one op declaration", "write `op name(x: T[n]) -> y: T[n]`");
  Diagnostics out;
  auto op = lower_op(context, *item, out);
  if (!op) return tl::unexpected<Diagnostics>(std::move(out));
  return std::move(*op);
}

}  // namespace pw
