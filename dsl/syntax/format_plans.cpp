#include "dsl/syntax/format.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

using Kind = ast::Strategy::Kind;

// ---- strategies

std::string strategy(const FormatContext& context, const ast::Strategy& s);

std::string sequence(const FormatContext& context, const std::vector<ast::Strategy>& parts) {
  std::string out;
  for (const ast::Strategy& part : parts)
    out += (out.empty() ? "" : " ; ") + strategy(context, part);
  return out;
}

std::string options(const FormatContext& context, const ast::Strategy& s) {
  std::string out;
  if (s.fuel) out += " fuel " + std::to_string(*s.fuel);
  if (s.nodes) out += " nodes " + std::to_string(*s.nodes);
  if (s.rounds) out += " rounds " + std::to_string(*s.rounds);
  if (!s.cost.empty()) out += " cost " + print_name(s.cost);
  if (!s.by.empty()) out += " by " + print_name(s.by);
  if (!s.ensures.empty()) out += " ensures " + print(s.ensures[0], &context.sources);
  if (!s.when.empty()) out += " when " + print(s.when[0], &context.sources);
  return out;
}

/// Prints the strategy under `atomic` or `repeat`: its own options need parentheses, or they would
/// belong to the prefix.
std::string prefixed(const FormatContext& context, const ast::Strategy& s) {
  const bool bare = s.kind == Kind::sequence || options(context, s).empty();
  return bare ? strategy(context, s) : "(" + strategy(context, s) + ")";
}

std::string core(const FormatContext& context, const ast::Strategy& s) {
  switch (s.kind) {
    case Kind::greedy: return "greedy { " + comma_separated(s.references) + " }";
    case Kind::once: return "once { " + comma_separated(s.references) + " }";
    case Kind::walk: return "walk { " + comma_separated(s.references) + " }";
    case Kind::saturate: return "saturate { " + comma_separated(s.references) + " }";
    case Kind::atomic: return "atomic " + prefixed(context, s.parts[0]);
    case Kind::repeat: return "repeat " + prefixed(context, s.parts[0]);
    case Kind::sequence: return "(" + sequence(context, s.parts) + ")";
    case Kind::reference: return s.references[0].first;
    case Kind::best: break;
  }
  std::string out;
  for (const ast::Strategy& part : s.parts) {
    const bool open = part.kind == Kind::sequence && options(context, part).empty();
    out += (out.empty() ? "" : " | ") +
           (open ? sequence(context, part.parts) : strategy(context, part));
  }
  return "best of { " + out + " }";
}
std::string strategy(const FormatContext& context, const ast::Strategy& s) {
  return core(context, s) + options(context, s);
}

bool is_open_sequence(const FormatContext& context, const ast::Strategy& s) {
  return s.kind == Kind::sequence && options(context, s).empty();
}

/// Prints one part a line; `;` only if the next one begins with a parenthesis, which would read as
/// a call's.
std::vector<Layout> strategy_lines(const FormatContext& context, const ast::Strategy& s) {
  std::vector<Layout> out;
  for (const ast::Strategy& part : s.parts) {
    out.push_back({part.span, strategy(context, part)});
    if (out.size() > 1 && out.back().text[0] == '(') out[out.size() - 2].text += " ;";
  }
  return out;
}

std::string numbers(const std::vector<std::int64_t>& list) {
  std::vector<std::string> out;
  for (std::int64_t n : list) out.push_back(std::to_string(n));
  return comma_separated(out);
}

// ---- graphs

/// Adds inputs; those of a kind that were on one line stay on one, as far as they fit.
void add_inputs(const FormatContext& context, const std::vector<ast::GraphItem::Input>& inputs,
                std::vector<Layout>& out) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ast::GraphItem::Input& in = inputs[i];
    const std::string text = print_name(in.name) + ": " + print(in.type, &context.sources) +
                             print_replicated(in.replicated);
    if (i > 0 && in.kind == inputs[i - 1].kind &&
        out.back().text.size() + text.size() + 8 < kLineWidth) {
      const std::uint32_t from = inputs[i - 1].span.end;
      if (context.text.substr(from, in.span.begin - from).find('\n') == std::string_view::npos) {
        out.back().text += ", " + text;
        out.back().span.end = in.span.end;
        continue;
      }
    }
    out.push_back({in.span, "in " + (in.kind.empty() ? "" : in.kind + " ") + text});
  }
}

std::string node(const FormatContext& context, const ast::GraphItem::Node& n) {
  std::string out = print(n.statement, &context.sources);
  if (n.group.empty() && n.source.empty()) return out;
  out += " @ " + quote(n.group);
  return n.source.empty() ? out : out + " " + quote(n.source);
}

// ---- tests

std::string expectation(const FormatContext& context, const ast::Expectation& e) {
  switch (e.kind) {
    case ast::Expectation::Kind::none: return "none";
    case ast::Expectation::Kind::numeric: return "numeric within " + print_real(e.within);
    case ast::Expectation::Kind::error: return "error " + quote(e.error);
    case ast::Expectation::Kind::guard:
    case ast::Expectation::Kind::count:
    case ast::Expectation::Kind::graph: break;
  }
  const Expr& g = e.guard[0];
  if (g.kind != Expr::Kind::in_range || g.args.size() < 3 || g.args[0].kind != Expr::Kind::binary)
    return print(g, &context.sources);
  const std::string count = print(g.args[0], &context.sources);  // the count in one range
  return count + " in " + print(g.args[1], &context.sources) + ".." +
         print(g.args[2], &context.sources);
}

std::string because(const ast::Expectation& e) {
  std::string out = e.because_code.empty() && e.because_text.empty() ? "" : " because";
  if (!e.because_code.empty()) out += " " + print_word(e.because_code);
  return e.because_text.empty() ? out : out + " " + quote(e.because_text);
}

void add_expectations(const FormatContext& context, const std::vector<ast::Expectation>& list,
                      std::vector<Layout>& out) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const ast::Expectation& e = list[i];
    if (e.kind == ast::Expectation::Kind::graph) {
      Layout graph = format_item(context, e.graph[0]);
      graph.text = "expect " + graph.text;
      graph.close += because(e);
      out.push_back(std::move(graph));
      continue;
    }
    std::string text = "expect " + expectation(context, e);
    while (i + 1 < list.size() && list[i + 1].span == e.span)
      text += ", " + expectation(context, list[++i]);
    out.push_back({e.span, text + because(e)});
  }
}

std::string apply(const FormatContext& context, const ast::Test& test) {
  std::string out = "apply " + comma_separated(test.apply);
  std::vector<std::string> with;
  for (const auto& [name, value] : test.with)
    with.push_back(print_name(name) + " = " + print(value, &context.sources));
  return with.empty() ? out : out + " with " + comma_separated(with);
}

}  // namespace

Layout format_item(const FormatContext& context, const ast::Pass& pass) {
  const bool open = is_open_sequence(context, pass.strategy);
  return {pass.span,
          "pass " + print_name(pass.name) + " = " +
              (open ? sequence(context, pass.strategy.parts) : strategy(context, pass.strategy))};
}

Layout format_item(const FormatContext& context, const ast::Pipeline& pipeline) {
  Layout out{pipeline.span, "pipeline " + print_name(pipeline.name) + " {"};
  out.block = true;
  out.separator = " ";
  out.parts = strategy_lines(context, pipeline.strategy);
  if (pipeline.ranges.empty()) return out;
  Layout ranges{pipeline.strategy.span, "for " + print_name(pipeline.ranges_symbol) +
                                            " in ranges(" + numbers(pipeline.ranges) + ") {"};
  ranges.block = true;
  ranges.separator = " ";
  ranges.parts = std::move(out.parts);
  out.parts = {std::move(ranges)};
  return out;
}

Layout format_item(const FormatContext& context, const ast::Split& split) {
  Layout out{split.span, "split " + print_name(split.name) + " {"};
  out.block = true;
  for (const ast::Split::At& at : split.at) {
    std::vector<std::string> ops;
    for (const auto& [name, span] : at.ops) ops.push_back(print_path(name));
    out.parts.push_back({at.span, "at " + comma_separated(ops)});
    if (!at.when.empty()) out.parts.back().text += " when " + print(at.when[0], &context.sources);
  }
  return out;
}

Layout format_item(const FormatContext&, const ast::Capture& capture) {
  Layout out{capture.span, "capture {"};
  out.block = true;
  std::vector<std::string> sizes;
  for (const ast::Capture::Sizes& s : capture.sizes) {
    std::string text = std::to_string(s.first);
    if (s.first != s.last)
      text += ".." + std::to_string(s.last) + (s.step == 1 ? "" : " by " + std::to_string(s.step));
    sizes.push_back(std::move(text));
  }
  if (!sizes.empty()) out.parts.push_back({{}, "sizes " + comma_separated(sizes)});
  if (!capture.mode.empty()) out.parts.push_back({{}, "mode " + print_name(capture.mode)});
  return out;
}

namespace {

std::string explore_clause(const FormatContext& context, const ast::Explore::Clause& clause) {
  using Clause = ast::Explore::Clause::Kind;
  std::vector<std::string> list;
  const auto numbers_of = [&] {
    for (const auto& [first, last] : clause.numbers)
      list.push_back(std::to_string(first) + ".." + std::to_string(last));
    return comma_separated(list);
  };
  switch (clause.kind) {
    case Clause::of: return "of " + clause.names[0].first;
    case Clause::orders: return "orders " + comma_separated(clause.names);
    case Clause::over: return "over " + comma_separated(clause.names);
    case Clause::by: return "by " + comma_separated(clause.names);
    case Clause::subsets: return "subsets";
    case Clause::tokens: return "tokens in " + numbers_of();
    case Clause::sample: return "sample " + std::to_string(clause.numbers[0].first);
    case Clause::seed: return "seed " + std::to_string(clause.numbers[0].first);
    case Clause::before:
      for (std::size_t i = 0; i + 1 < clause.names.size(); i += 2)
        list.push_back(clause.names[i].first + ": " + clause.names[i + 1].first);
      return "before " + comma_separated(list);
    case Clause::with: break;
  }
  for (const Expr& value : clause.values) list.push_back(print(value, &context.sources));
  return "with " + clause.names[0].first + " in " + comma_separated(list);
}

}  // namespace

Layout format_item(const FormatContext& context, const ast::Explore& explore) {
  Layout out{explore.span, "explore " + print_name(explore.name) + " {"};
  out.block = true;
  for (const ast::Explore::Clause& clause : explore.clauses)
    out.parts.push_back({clause.span, explore_clause(context, clause)});
  return out;
}

Layout format_item(const FormatContext& context, const ast::GraphItem& graph) {
  Layout out{graph.span, "graph " + (graph.name.empty() ? "" : print_name(graph.name) + " ") + "{"};
  out.block = true;
  for (const auto& [name, fact] : graph.symbols)
    out.parts.push_back({{}, print_symbol(name, fact)});
  for (const ast::OpItem& op : graph.ops) out.parts.push_back(format_item(context, op));
  add_inputs(context, graph.inputs, out.parts);
  for (const ast::GraphItem::Node& n : graph.nodes)
    out.parts.push_back({n.statement.span, node(context, n)});
  std::vector<std::string> outputs;
  for (const auto& [name, span] : graph.outputs) outputs.push_back(print_name(name));
  const Span place = graph.outputs.empty() ? Span() : graph.outputs[0].second;
  out.parts.push_back({place, outputs.empty() ? "out" : "out " + comma_separated(outputs)});
  for (const ast::GraphItem::Write& w : graph.writes)
    out.parts.push_back({w.span, "write " + print_name(w.input) + " = " + print_name(w.value)});
  return out;
}

Layout format_item(const FormatContext& context, const ast::Test& test) {
  Layout out{test.span, "test " + print_name(test.name) + " {"};
  out.block = true;
  if (!test.file.empty()) out.parts.push_back({{}, "graph " + quote(test.file)});
  for (const ast::GraphItem& graph : test.graph) out.parts.push_back(format_item(context, graph));
  if (!test.apply.empty()) out.parts.push_back({test.apply[0].second, apply(context, test)});
  add_expectations(context, test.expectations, out.parts);
  return out;
}

}  // namespace pw
