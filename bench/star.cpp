// Exports run_star.
#include "bench/star.hpp"

#include "bench/measure.hpp"
#include "dsl/dsl.hpp"

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

}  // namespace

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
