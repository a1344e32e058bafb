// Times `pwr check` for very many rules or very large patterns, compared with a tenth of them, and
// runs of graphs with very many outputs, against limits. Medians of processor time.
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "base/hash.hpp"
#include "bench/measure.hpp"
#include "dsl/dsl.hpp"
#include "exec/runner.hpp"
#include "rewriter/analysis/analysis.hpp"

namespace {

using namespace pw;
using namespace pw::bench;

constexpr const char* kOne[] = {"relu", "silu",    "neg",  "exp", "sqrt", "rsqrt",
                                "abs",  "sigmoid", "tanh", "sin", "cos",  "log"};
constexpr const char* kTwo[] = {"add", "mul", "sub", "div"};

/// A pattern of random ops, at most so deep; `next` counts its operands.
std::string pattern(Random& random, std::size_t depth, std::size_t& next) {
  if (depth == 0) return fmt::format("x{}: T[*s]", next++);
  if (random.below(2) == 0)
    return fmt::format("{}({})", kOne[random.below(12)], pattern(random, depth - 1, next));
  const std::string a = pattern(random, depth - 1, next);
  return fmt::format("{}({}, {})", kTwo[random.below(4)], a,
                     pattern(random, random.below(depth), next));
}

/// Rules of one pass; where `root` is one op, all share it.
std::string many_rules(std::size_t count, bool one_root, bool guards) {
  Random random(1);
  std::string text, names;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t next = 0;
    std::string body = pattern(random, 1 + random.below(3), next);
    if (one_root) body = "silu(" + body + ")";
    text += fmt::format("rule r{} {{ y = {}{} => y = neg(x0) }}\n", i, body,
                        guards && i % 2 == 1 ? " where T in {f16, bf16}" : "");
    names += fmt::format("{}r{}", i == 0 ? "" : ", ", i);
  }
  return text + "pass p = greedy { " + names + " }\n";
}

/// One rule of `count` nodes: each line from those before it.
std::string one_rule(std::size_t count,
                     const std::function<std::string(std::size_t, const std::string&)>& node) {
  std::string text = "rule large {\n";
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format("{} = {}\n", i + 1 == count ? "y" : fmt::format("a{}", i),
                        node(i, i == 0 ? "x: T[*s]" : fmt::format("a{}", i - 1)));
  return text + "=> y = neg(x) }\npass p = greedy { large }\n";
}

std::string optional_casts(std::size_t count, bool in_a_row) {
  std::string body = in_a_row ? "x" : "cast?(x)";
  for (std::size_t i = 0; i < count; ++i)
    body = in_a_row ? fmt::format("{}(cast?({}))", kOne[i % 12], body)
                    : fmt::format("{}({}, cast?(x{}))", kTwo[i % 3], body, i);
  return "rule r { y = " + body + " => y = neg(x) }\npass p = greedy { r }\n";
}

double check_seconds(const std::string& text) {
  return all_threads_seconds([&] {
    const auto context = std::make_shared<Context>();
    const RuleSet rules = need(context, load_rule_texts(context, {{"rules.pwr", text}}));
    (void)analyse(rules, need(context, bind_params(rules, {})));
  });
}

double run_seconds(std::size_t outputs) {
  std::string text = "graph g {\n  in x: f32[4, 4]\n  z0 = relu(x)\n", names = "z0";
  for (std::size_t i = 1; i < outputs; ++i) {
    text += fmt::format("  z{} = add(x, z0)\n", i);
    names += fmt::format(", z{}", i);
  }
  const auto context = std::make_shared<Context>();
  need(context, load_op_library(context));
  const Graph graph =
      need(context, parse_graph(context, text + "  out " + names + "\n}\n", "g.pwg"));
  const std::unique_ptr<Backend> backend = make_eager();
  Weights weights(graph, 1);
  return seconds([&] { need(context, run_whole(graph, *backend, weights, one_sequence(4))); });
}

class Cases {
 public:
  /// The whole and a tenth of it; `limit` in seconds, `growth` of their ratio.
  void add(const std::string& what, double limit, double growth,
           const std::function<double(std::size_t)>& timed, std::size_t size) {
    const double tenth = timed(size / 10), whole = timed(size);
    const double ratio = whole / std::max(tenth, 1e-3);
    table_.add({what, grouped(size), milliseconds(tenth), milliseconds(whole),
                fmt::format("{:.1f}", ratio)});
    promises_.at_most(what, whole, limit, "s");
    promises_.at_most(what + ", compared with a tenth", ratio, growth, "times");
  }
  int print() const {
    std::fputs((table_.print() + "\n" + promises_.print()).c_str(), stdout);
    return promises_.kept() ? 0 : 1;
  }

 private:
  Table table_{{"case", "size", "a tenth", "all of it", "ratio"}};
  Promises promises_;
};

}  // namespace

int main() {
  Cases cases;
  const auto rules = [&](const std::string& what, bool one_root, bool guards) {
    cases.add(
        what, 5, 20, [=](std::size_t n) { return check_seconds(many_rules(n, one_root, guards)); },
        10000);
  };
  rules("rules of many roots", false, false);
  rules("rules of many roots, half with guards", false, true);
  rules("rules of one root", true, false);
  const auto large = [&](const std::string& what, auto node) {
    cases.add(what, 2, 200, [=](std::size_t n) { return check_seconds(one_rule(n, node)); }, 200);
  };
  large("nodes in a row",
        [](std::size_t, const std::string& before) { return "relu(" + before + ")"; });
  large("sums in a row", [](std::size_t i, const std::string& before) {
    return fmt::format("add({}, w{})", before, i);
  });
  large("sums of a value with itself", [](std::size_t, const std::string& before) {
    return before.front() == 'x' ? "relu(" + before + ")" : fmt::format("add({0}, {0})", before);
  });
  for (const bool in_a_row : {true, false}) {
    cases.add(
        in_a_row ? "optional casts in a row" : "optional casts of operands", 1, 2048,
        [=](std::size_t n) { return check_seconds(optional_casts(n, in_a_row)); }, 11);
  }
  cases.add("outputs of a run", 3, 20, run_seconds, 20000);
  return cases.print();
}
