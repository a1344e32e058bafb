#include "import/fx/parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/try.hpp"
#include "graph/compare/canonical.hpp"
#include "graph/passes/writes.hpp"
#include "import/fx/conditions.hpp"
#include "rewriter/rewriter.hpp"

namespace pw::fx {
namespace {

// "dumps/qwen2-1.5b.fx.txt" → "qwen2_1_5b"
std::string graph_name(std::string file) {
  file = file.substr(file.rfind('/') + 1);
  for (std::string_view tail : {".txt", ".py", ".fx", ".pt2"})
    if (file.ends_with(tail)) file.resize(file.size() - tail.size());
  file = as_name(file);
  return file.empty() || is_digit(file[0]) ? "graph" + file : file;
}

// Erases buffers that only received results, and the views that led to them.
void erase_buffers(Graph& graph, const Effects& effects) {
  std::vector<ValueId> work(effects.dropped().begin(), effects.dropped().end());
  while (!work.empty()) {
    ValueId v = work.back();
    work.pop_back();
    NodeId n = graph.producer(v);
    if (!n.valid() || !graph.alive(n)) continue;
    bool unused =
        graph.op_of(n).traits.view || effects.is_maker(v);  // nodes that compute stay, read or not
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      unused = unused && graph.unused(graph.result(n, i));
    if (!unused) continue;
    for (ValueId operand : graph.operands(n))
      if (operand.valid()) work.push_back(operand);
    graph.erase(n);
  }
  OpId constant = graph.context().ops.find(Primitive::constant);
  for (NodeId n : graph.order())  // left by a mapping that did not apply
    if (graph.op(n) == constant && graph.unused(graph.result(n))) graph.erase(n);
}

// The graph without the inputs that were only the names of layers.
Graph without_layer_names(const Graph& graph, const ContextPtr& context,
                          const std::set<ValueId>& layer_names) {
  Graph out(context, graph.name);
  out.facts = graph.facts;
  std::vector<ValueId> map(graph.value_bound());
  for (ValueId v : graph.inputs())
    if (!layer_names.contains(v) || !graph.unused(v))
      map[v.index] = out.add_input(graph.value_name(v), graph.type(v), graph.input_kind(v));
  for (NodeId n : graph.order()) {
    NodeSpec spec;
    spec.op = graph.op(n);
    spec.attributes = graph.attributes(n);
    spec.group = graph.group(n);
    spec.source = graph.source(n);
    for (ValueId v : graph.operands(n)) spec.operands.push_back(v.valid() ? map[v.index] : v);
    for (std::size_t i = 0; i < graph.result_count(n); ++i) {
      const ValueId v = graph.result(n, i);
      spec.results.push_back({graph.type(v), std::string(graph.value_name(v))});
    }
    const NodeId copy = out.add_node(spec);
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      map[graph.result(n, i).index] = out.result(copy, i);
  }
  const std::size_t returned = graph.outputs().size() - graph.written_inputs().size();
  for (std::size_t i = 0; i < returned; ++i) out.add_output(map[graph.outputs()[i].index]);
  for (std::size_t i = 0; i < graph.written_inputs().size(); ++i)
    out.add_write(map[graph.written_inputs()[i].index], map[graph.outputs()[returned + i].index]);
  return out;
}

// Reports values without a type: rules that need one do not match them, and they cannot be run.
void note_untyped(const Graph& graph, bool typed, FxReport& report) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string_view> names;
  for (ValueId v : graph.inputs())
    if (!typed && graph.type(v) == Types::unknown() && !graph.unused(v))
      names.push_back(graph.value_name(v));
  for (NodeId n : graph.order())
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      if (const ValueId v = graph.result(n, i);
          graph.type(v) == Types::unknown() && !graph.unused(v))
        names.push_back(graph.value_name(v));
  if (names.empty()) return;
  std::string shown;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i)
    shown += fmt::format("{}{}", i > 0 ? ", " : "", names[i]);
  report.notes.push_back(fmt::format("{} {} no known type: {}{}; pass --type NAME=TYPE for inputs",
                                     names.size(), names.size() == 1 ? "value has" : "values have",
                                     shown, names.size() > kShown ? ", …" : ""));
}

bool is_identity(const Graph& graph, NodeId n) {
  const std::string_view op = graph.op_of(n).name;
  return (op == "detach" || op == "clone") &&
         graph.type(graph.operand(n, 0)) == graph.type(graph.result(n));
}

// Two returned tensors must stay two, and a returned tensor must not become an input of the caller.
bool may_leave_out(const Graph& graph, NodeId n) {
  const ValueId x = graph.operand(n, 0);
  return !graph.is_output(graph.result(n)) || !(graph.is_input(x) || graph.is_output(x));
}

// Leaves out a view of a whole value, which takes its name if it is returned.
void leave_out(Graph& graph, NodeId n) {
  const ValueId x = graph.operand(n, 0), y = graph.result(n);
  const bool returned = graph.is_output(y);
  const std::string name(graph.value_name(y));
  graph.replace_uses(y, x);
  graph.erase(n);
  if (returned) graph.rename(x, name);
}

// Leaves out what has no effect, so that one model is one graph: torch.compile imports what AOT
// autograd has cleaned, an archive what was traced. These are dropout in evaluation and casts to
// the same dtype (`detach`), copies that share no memory with what the caller holds, and nodes that
// no output reads.
void leave_out_idle_nodes(Graph& graph, FxReport& report) {
  const auto name_of = [&](NodeId n) { return std::string(graph.op_of(n).name); };
  bool copies = false;
  for (NodeId n = graph.first(); n.valid();) {
    const NodeId after = graph.next(n);
    if (graph.op_of(n).traits.view && is_identity(graph, n) && may_leave_out(graph, n)) {
      leave_out(graph, n);
      ++report.dropped[name_of(n)];
    }
    copies = copies || graph.op_of(n).primitive == Primitive::clone;
    n = after;
  }
  std::vector<NodeId> clones, unread;
  if (copies) elide_clones(graph, &clones);
  for (NodeId n : clones) ++report.dropped[name_of(n)];
  eliminate_dead(graph, &unread);
  for (NodeId n : unread)
    if (!graph.op_of(n).is_literal()) ++report.unread[name_of(n)];
}

// Returns what a value of the dump is after that; invalid if nothing reads it.
ValueId present(const Graph& graph, ValueId v) {
  for (;;) {
    const NodeId n = v.valid() ? graph.producer(v) : NodeId();
    if (!n.valid() || graph.alive(n)) return v;
    v = is_identity(graph, n) ? graph.operand(n, 0) : ValueId();
  }
}

// Reports names of the dump that refer to a value with another name.
void note_aliases(const Graph& graph, const BoundNames<Value>& env, bool renamed,
                  FxReport& report) {
  for (const auto& [name, value] : env) {
    if (value.kind != Value::Kind::tensor) continue;
    const ValueId v = present(graph, value.tensor);
    const bool own = value.own_name && !renamed && v == value.tensor;  // spares making its name
    if (!own && v.valid() && graph.named(v) && graph.value_name(v) != name)
      report.aliases.emplace(name, graph.value_name(v));
  }
}

}  // namespace

Parts::Parts(const ContextPtr& context, const FxOptions& given, const Function& of,
             std::string_view signature)
    : options(given),
      function(of),
      typed(std::ranges::any_of(of.parameters,
                                [](const Parameter& p) { return !p.type.empty() && !p.given; })),
      graph(context, graph_name(given.file)),
      symbols(*context),
      sizes(graph, report),
      effects(report),
      emitter(graph, symbols, names, sizes, effects, report),
      versions(emitter, !given.no_writes),
      types(*context, symbols, report),
      inputs(given, of, signature, types, emitter, versions, env),
      read_names(of),
      known(emitter, versions, given, of),
      unknown(emitter, versions, given, read_names, typed),
      calls(emitter, versions, known, unknown, given) {}

Result<FxImport> finish(Parts& parts, const ContextPtr& context) {
  Graph& graph = parts.graph;
  FxReport& report = parts.report;
  if (graph.outputs().empty())
    return fail(parts.function.span, "PW0513", "the function returns no value");
  PW_TRY(parts.inputs.check_given_types());
  erase_buffers(graph, parts.effects);
  parts.inputs.classify(report);
  parts.unknown.note_assumed_writes(report);
  copy_undeclared_writes(graph);
  if (!parts.options.keep_idle) leave_out_idle_nodes(graph, report);
  note_untyped(graph, parts.typed, report);
  note_aliases(graph, parts.env, parts.emitter.renamed(), report);
  if (!parts.effects.layer_names().empty())
    graph = without_layer_names(graph, context, parts.effects.layer_names());
  settle_numbers(graph);
  settle_conditions(graph, parts.symbols, report);
  report.nodes = graph.node_count();
  return FxImport{graph.compact(), std::move(report)};
}

}  // namespace pw::fx
