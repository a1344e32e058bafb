// Imports the part of a torch.fx graph that rules can see, directly from its nodes: there is no
// intermediate text or syntax tree.
#include "python/seen_import.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "dsl/matched_ops.hpp"
#include "import/fx/call_importer.hpp"
#include "python/seen_nodes.hpp"
#include "python/torch_arguments.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

using Index = std::uint32_t;
using Role = SeenNode::Role;

bool has_symbols(std::string_view type) {
  return type.starts_with("Sym(") ||
         type.find_first_not_of("0123456789, []", std::min(type.find('['), type.size())) !=
             std::string_view::npos;
}

/// Values by node, and the arguments of calls that contain them.
class ValueMaker {
 public:
  using Made = fx::Value;
  using Kind = fx::Value::Kind;
  explicit ValueMaker(Dims& dims) : dims_(dims) {}

  void set(const py::handle& node, Made value) {
    values_.insert_or_assign(node.ptr(), std::move(value));
  }
  /// Returns true if a library call may have all of the converted arguments.
  [[nodiscard]] bool complete() const { return complete_; }

  Made node(const py::handle& node) {
    const auto it = values_.find(node.ptr());
    return it == values_.end() ? unknown() : it->second;
  }
  Made word(const std::string& text) {
    const std::optional<Made> value = fx::torch_word(text);
    return value ? *value : unknown();
  }
  static Made none() { return {}; }
  static Made boolean(bool value) {
    Made out = of(Kind::boolean);
    out.boolean = value;
    return out;
  }
  Made integer(std::int64_t value) {
    Made out = of(Kind::integer);
    out.dim = dims_.constant(value);
    return out;
  }
  static Made real(double value) {
    Made out = of(Kind::real);
    out.real = value;
    return out;
  }
  static Made text(std::string value) {
    Made out = of(Kind::string);
    out.text = std::move(value);
    return out;
  }
  static Made list(std::vector<Made> items, bool /*tuple*/) {
    Made out = of(Kind::list);
    out.items = std::move(items);
    return out;
  }
  Made slice(const Made&, const Made&, const Made&) { return unknown(); }
  Made dict(const std::vector<std::pair<std::string, Made>>&) { return unknown(); }

 private:
  static Made of(Kind kind) {
    Made out;
    out.kind = kind;
    return out;
  }
  Made unknown() {
    complete_ = false;
    return {};
  }

  Dims& dims_;
  std::unordered_map<PyObject*, Made> values_;
  bool complete_ = true;
};

class SeenImport {
 public:
  SeenImport(const ContextPtr& context, TorchObjects& torch, SeenGraph graph, FxOptions options)
      : context_(context),
        torch_(torch),
        graph_(std::move(graph)),
        options_(std::move(options)),
        made_(context->dims) {}

  /// Returns nothing if the whole graph must be imported.
  std::optional<FxImport> import() {
    function_.span = Span{context_->sources.add(options_.file, ""), 0, 0};
    types_.resize(graph_.nodes.size());
    if (!read_inputs()) return std::nullopt;
    to_.emplace(context_, options_, function_);
    check(to_->begin());
    for (const SeenNode& n : graph_.nodes)
      if (n.role == Role::source ? is_input(n.node)
                                 : n.role == Role::call || n.role == Role::unseen)
        to_->reserve(torch_.name(n.node));
    for (Index i = 0; i < graph_.nodes.size(); ++i)
      if (!add(i) || !made_.complete()) return std::nullopt;
    std::vector<std::pair<std::string, fx::Value>> outputs;
    for (const Index i : graph_.outputs) {
      fx::Value value = made_.node(graph_.nodes[i].node);
      if (value.kind != fx::Value::Kind::tensor) return std::nullopt;
      outputs.emplace_back(torch_.name(graph_.nodes[i].node), std::move(value));
    }
    return need(context_, to_->finish(outputs));
  }

 private:
  template <class T>
  T check(Result<T> result) const {
    return need(context_, std::move(result));
  }
  [[nodiscard]] bool is_input(const py::handle& node) const { return inputs_.contains(node.ptr()); }
  [[nodiscard]] const std::string& target_of(const SeenNode& n) {
    return torch_.target(attribute(n.node, torch_.names.target));
  }

  // Types the values that calls read but none computes. Returns false for a type with symbols.
  bool read_inputs() {
    for (const SeenNode& n : graph_.nodes) {
      if (n.role != Role::call) continue;
      for (const Index read : n.reads)
        if (!read_type(read)) return false;
      if (target_of(n) != kPart || n.reads.empty()) continue;
      const py::tuple arguments = attribute(n.node, torch_.names.args);
      if (arguments.size() == 2 && PyLong_CheckExact(arguments[1].ptr()))
        parts_[n.reads.front()].emplace(arguments[1].cast<int>(),
                                        fx::Wanted{torch_.name(n.node), Types::unknown(), {}});
    }
    return true;
  }

  bool read_type(Index i) {
    const SeenNode& n = graph_.nodes[i];
    if (n.role == Role::call || !types_[i].empty()) return true;
    types_[i] = torch_.type(torch_.value(n.node));
    if (types_[i].empty() || has_symbols(types_[i])) return false;
    if (n.role == Role::source) {
      const std::string name = torch_.name(n.node);
      function_.parameters.push_back({name, function_.span, types_[i], function_.span});
      options_.kinds.emplace(name, InputKind::input);
      inputs_.insert(n.node.ptr());
    }
    return true;
  }

  bool add(Index i) {
    const SeenNode& n = graph_.nodes[i];
    if (n.role == Role::source) {
      if (is_input(n.node)) made_.set(n.node, *to_->input(torch_.name(n.node)));
    } else if (n.role == Role::unseen) {
      std::vector<fx::Value> reads;
      for (const Index read : n.reads) reads.push_back(made_.node(graph_.nodes[read].node));
      made_.set(n.node, check(to_->add_unseen(torch_.name(n.node), reads, types_[i])));
    } else if (n.role == Role::call) {
      return add_call(i);
    }
    return true;
  }

  bool add_call(Index i) {
    const SeenNode& n = graph_.nodes[i];
    fx::Arguments arguments;
    for (const py::handle item : attribute(n.node, torch_.names.args))
      arguments.positional.push_back(torch_argument(torch_, made_, item));
    for (const auto& [key, item] :
         py::reinterpret_borrow<py::dict>(attribute(n.node, torch_.names.kwargs)))
      arguments.keywords.emplace_back(py::str(key).cast<std::string>(),
                                      torch_argument(torch_, made_, item));
    if (!made_.complete()) return false;
    const std::string& target = target_of(n);
    std::optional<fx::Value> value;
    if (target == kPart) {
      value = part_of(arguments);
    } else {
      const auto parts = parts_.find(i);
      value = check(to_->add_call(
          target, arguments, torch_.name(n.node),
          parts == parts_.end() ? std::map<int, fx::Wanted>() : std::move(parts->second)));
    }
    if (!value || !is_typed(n.node, *value)) return false;
    made_.set(n.node, std::move(*value));
    return true;
  }

  [[nodiscard]] std::optional<fx::Value> part_of(const fx::Arguments& arguments) const {
    if (arguments.positional.size() != 2) return std::nullopt;
    const fx::Value &tuple = arguments.positional[0], &at = arguments.positional[1];
    if (at.kind != fx::Value::Kind::integer) return std::nullopt;
    const auto index = static_cast<std::size_t>(context_->dims.value(at.dim).value_or(-1));
    return index < tuple.items.size() ? std::optional(tuple.items[index]) : std::nullopt;
  }

  // A call that the library does not define has the type that torch computed.
  bool is_typed(const py::handle& node, const fx::Value& value) {
    if (value.kind == fx::Value::Kind::list) return true;  // its parts determine it
    if (value.kind != fx::Value::Kind::tensor) return false;
    if (to_->type(value) != nullptr) return true;
    const std::string type = torch_.type(torch_.value(node));
    if (type.empty() || has_symbols(type)) return false;
    check(to_->state_type(value, type));
    return true;
  }

  static constexpr std::string_view kPart = "operator.getitem";

  ContextPtr context_;
  TorchObjects& torch_;
  SeenGraph graph_;
  FxOptions options_;
  fx::Function function_;
  std::optional<fx::CallImporter> to_;
  ValueMaker made_;
  std::vector<std::string> types_;                    // of values that calls read but none computes
  std::unordered_set<PyObject*> inputs_;              // the sources among them
  std::map<Index, std::map<int, fx::Wanted>> parts_;  // of calls of several results
};

std::optional<py::dict> import_seen(const ContextPtr& context, const py::object& nodes,
                                    const PyRules& rules, const std::string& pipeline,
                                    const py::object& torch) {
  const Strategy* const strategy = rules.set->strategy(pipeline);
  const auto ops = strategy == nullptr ? std::nullopt : matched_ops(*rules.set, *strategy);
  if (!ops) return std::nullopt;
  TorchObjects objects(torch);
  std::optional<SeenGraph> seen = find_seen(nodes, objects, context, *ops);
  if (!seen || seen->outputs.empty()) return std::nullopt;
  FxOptions options;
  options.file = "torch";
  options.keep_stateful = options.keep_idle = options.computed_types = options.no_writes = true;
  for (const auto& [target, line] :
       torch.attr("schemas")().cast<std::map<std::string, std::string>>())
    options.schemas.emplace(target, line);
  std::optional<FxImport> done =
      SeenImport(context, objects, std::move(*seen), std::move(options)).import();
  if (!done) return std::nullopt;
  return summary_of(context, std::move(*done));
}

}  // namespace

py::dict summary_of(const ContextPtr& context, FxImport done) {
  py::dict out;
  out["opaque"] = done.report.opaque;
  out["reasons"] = done.report.reasons;
  out["dropped"] = done.report.dropped;
  out["aliases"] = done.report.aliases;
  out["notes"] = done.report.notes;
  out["graph"] = PyGraph{context, std::move(done.graph)};
  return out;
}

void add_seen_import(py::module_& module) {
  module.def(
      "import_seen", &import_seen, py::arg("session"), py::arg("nodes"), py::arg("rules"),
      py::arg("pipeline"), py::arg("torch"),
      "Imports the part of a torch.fx graph that the pipeline's rules can match, and the "
      "operands of calls that no rule can see. Returns the result of FxGraph.convert, or "
      "None if the whole graph matters: it has writes or symbols, or a pass visits all nodes. "
      "`torch` has the members that FxGraph requires, and schemas().");
}

}  // namespace pw::python
