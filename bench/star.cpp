#include "bench/star.hpp"

#include <array>

#include "bench/measure.hpp"
#include "dsl/dsl.hpp"
#include "rewriter/rewriter.hpp"

namespace pw::bench {
namespace {

class Star {
 public:
  explicit Star(const ContextPtr& context) : graph_(context), relu_(context->ops.find("relu")) {
    type_ = context->types.get(DType::bf16, {context->dims.constant(64)});
    x_ = graph_.add_input("x", type_, InputKind::input);
    y_ = graph_.add_input("y", type_, InputKind::input);
  }

  void grow(std::size_t users) {
    users_.reserve(users);
    for (std::size_t i = 0; i < users; ++i)
      users_.push_back(
          graph_.add_node(relu_, {&x_, 1}, Attributes::empty(), {&type_, 1}, NodeId()));
  }
  void turn() {
    for (NodeId n : users_) graph_.set_operand(n, 0, y_);
  }
  void turn_at_once() { graph_.replace_uses(y_, x_); }
  void erase() {
    for (NodeId n : users_) graph_.erase(n);
  }
  void undo_all(Graph::Checkpoint to) { graph_.rollback(to); }
  Graph& graph() { return graph_; }

 private:
  Graph graph_;
  OpId relu_;
  TypeId type_;
  ValueId x_, y_;
  std::vector<NodeId> users_;
};

constexpr const char* kMany = R"(
rule merge_products {
  many y = mm(x, w: T[k, m])
  where count(y) >= 2
  =>
  z = mm(x, cat(w...){dim = 1})
  y... = split(z){dim = 1, sizes = [m...]}
}
pass all = greedy { merge_products }
)";

/// x @ w0, x @ w1, …, each an output.
Graph make_products(const ContextPtr& context, std::size_t users) {
  Graph graph(context, "products");
  const auto type = [&](std::int64_t rows, std::int64_t columns) {
    return context->types.get(DType::bf16,
                              {context->dims.constant(rows), context->dims.constant(columns)});
  };
  const TypeId w_type = type(64, 16), y_type = type(32, 16);
  const OpId mm = context->ops.find("mm");
  const ValueId x = graph.add_input("x", type(32, 64), InputKind::input);
  for (std::size_t i = 0; i < users; ++i) {
    const std::array<ValueId, 2> operands{
        x, graph.add_input("w" + std::to_string(i), w_type, InputKind::weight)};
    const NodeId n = graph.add_node(mm, operands, Attributes::empty(), {&y_type, 1}, NodeId());
    graph.add_output(graph.result(n));
  }
  return graph;
}

}  // namespace

std::optional<double> run_many(std::size_t users, int runs) {
  std::vector<double> samples;
  for (int i = 0; i < runs; ++i) {
    const auto context = std::make_shared<Context>();
    const Result<RuleSet> rules = load_rule_texts(context, {{"many.pwr", kMany}});
    if (!rules) return std::nullopt;
    const Env params = need(context, bind_params(*rules, {}));
    Graph graph = make_products(context, users);
    std::size_t rewrites = 0;
    samples.push_back(cold_seconds([&] {
      rewrites = need(context, run_pipeline(graph, *rules, "all", params)).journal.total();
    }));
    if (rewrites != 1) die("a star of products was not merged in one rewrite");
  }
  return median(samples) / static_cast<double>(users);
}

std::vector<std::pair<std::string, double>> run_star(std::size_t users, int runs) {
  const std::vector<std::string> names{"add_node", "set_operand", "replace_uses", "erase",
                                       "rollback of all"};
  std::vector<std::vector<double>> samples(names.size());
  for (int i = 0; i < runs; ++i) {
    auto context = std::make_shared<Context>();
    need(context, load_op_library(context));
    Star star(context);
    star.graph().start_undo();
    const Graph::Checkpoint start = star.graph().checkpoint();
    samples[0].push_back(cold_seconds([&] { star.grow(users); }));
    samples[1].push_back(cold_seconds([&] { star.turn(); }));
    samples[2].push_back(cold_seconds([&] { star.turn_at_once(); }));
    samples[3].push_back(cold_seconds([&] { star.erase(); }));
    samples[4].push_back(cold_seconds([&] { star.undo_all(start); }));
  }
  std::vector<std::pair<std::string, double>> out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out.emplace_back(names[i], median(samples[i]) / static_cast<double>(users));
  return out;
}

}  // namespace pw::bench
