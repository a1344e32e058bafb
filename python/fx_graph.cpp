// Exports add_fx_graph: a graph of torch.fx, told node by node, as the importer takes it. What is
// asked of every node is read here; what Python knows better, once for each object.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include "dsl/matched_ops.hpp"
#include "graph/import/fx.hpp"
#include "graph/import/fx_ast.hpp"
#include "python/module.hpp"
#include "python/seen_nodes.hpp"
#include "python/torch_objects.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

constexpr int kDeepest = fx::kMaxNesting;

/// What an argument refers to instead of being it: a value of the graph, or a name of torch's, such
/// as torch.float32.
struct Ref {
  std::string name;
};

/// Makes arguments of torch's calls those of the importer.
class Arguments {
 public:
  Arguments(const TorchObjects& torch, const Span& span) : torch_(torch), span_(span) {}

  [[nodiscard]] fx::Expr name(std::string text) const {
    fx::Expr out = empty(Kind::name);
    out.text = std::move(text);
    return out;
  }

  [[nodiscard]] fx::Expr call(std::string text, const py::handle& positional,
                              const py::handle& keywords, int depth = 0) const {
    fx::Expr out = list(positional, depth, Kind::call);
    out.text = std::move(text);
    for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(keywords)) {
      out.keywords.push_back(py::str(key).cast<std::string>());
      out.args.push_back(of(value, depth + 1));
    }
    return out;
  }

  [[nodiscard]] fx::Expr of(const py::handle& object, int depth) const {
    if (depth > kDeepest) throw mistake("PW1411", "an argument is nested too deeply");
    PyObject* const value = object.ptr();
    if (torch_.is_node(object))
      return name(std::string(text_of(attribute(object, torch_.names.name))));
    if (object.is_none()) return empty(Kind::none);
    if (PyBool_Check(value)) return whole(Kind::boolean, value == Py_True ? 1 : 0);
    if (PyLong_CheckExact(value)) return whole(Kind::integer, object.cast<std::int64_t>());
    if (PyList_CheckExact(value)) return list(object, depth, Kind::list);
    if (PyTuple_Check(value)) return list(object, depth, Kind::tuple);
    if (PyFloat_Check(value)) {
      fx::Expr out = empty(Kind::real);
      out.real = object.cast<double>();
      return out;
    }
    if (PyUnicode_Check(value)) {
      fx::Expr out = empty(Kind::string);
      out.text = object.cast<std::string>();
      return out;
    }
    return rare(object, depth);
  }

 private:
  using Kind = fx::Expr::Kind;

  [[nodiscard]] fx::Expr empty(Kind kind) const {
    fx::Expr out;
    out.kind = kind;
    out.span = span_;
    return out;
  }
  [[nodiscard]] fx::Expr whole(Kind kind, std::int64_t value) const {
    fx::Expr out = empty(kind);
    out.integer = value;
    return out;
  }
  [[nodiscard]] fx::Expr list(const py::handle& object, int depth, Kind kind) const {
    fx::Expr out = empty(kind);
    for (const py::handle item : object) out.args.push_back(of(item, depth + 1));
    return out;
  }

  [[nodiscard]] fx::Expr rare(const py::handle& object, int depth) const {
    if (py::isinstance<Ref>(object)) return name(object.cast<Ref>().name);
    if (PyList_Check(object.ptr())) return list(object, depth, Kind::list);
    if (PyDict_Check(object.ptr())) return call("dict", py::tuple(), object, depth);
    if (PySlice_Check(object.ptr()))
      return call("slice",
                  py::make_tuple(object.attr("start"), object.attr("stop"), object.attr("step")),
                  py::dict(), depth);
    const py::object told = torch_.leaf(object);
    if (!told.is(object)) return of(told, depth + 1);
    if (PyLong_Check(object.ptr())) return whole(Kind::integer, object.cast<std::int64_t>());
    throw mistake("PW1411", fmt::format("an argument is a {}, which no call of a graph has",
                                        py::str(py::type::of(object)).cast<std::string>()));
  }

  const TorchObjects& torch_;
  Span span_;
};

/// path:line of the innermost frame of a stack as torch writes it; empty: it has none.
std::string place_of(std::string_view stack) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  std::size_t file = stack.rfind('F');  // before the text, a few words from its end
  while (file != std::string_view::npos && !stack.substr(file).starts_with(kFile))
    file = file == 0 ? std::string_view::npos : stack.rfind('F', file - 1);
  if (file == std::string_view::npos) return {};
  stack.remove_prefix(file + kFile.size());
  const std::size_t end = stack.find(kLine);
  if (end == std::string_view::npos) return {};
  const std::string_view line = stack.substr(end + kLine.size());
  return fmt::format("{}:{}", stack.substr(0, end), line.substr(0, line.find(',')));
}

/// All that was told, as one text: equal where the graphs are.
class KeyText {
 public:
  void add(std::string_view word) { out_ += fmt::format("{}:{} ", word.size(), word); }
  void add(const fx::Expr& e) {
    out_ += fmt::format("{} {} {} {} {} ", static_cast<int>(e.kind), e.integer, e.real,
                        e.args.size(), e.keywords.size());
    add(e.text);
    for (const std::string& keyword : e.keywords) add(keyword);
    for (const fx::Expr& argument : e.args) add(argument);
  }
  void add(const fx::Function& function) {
    for (const fx::Parameter& parameter : function.parameters) {
      add(parameter.name);
      add(parameter.type);
    }
    for (const fx::Statement& statement : function.statements) {
      for (const fx::Expr& target : statement.targets) add(target);
      add(statement.type);
      add(statement.source);
      add(statement.value);
    }
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class FxGraph {
 public:
  FxGraph(ContextPtr context, const std::string& name, bool keep_stateful, const py::object& torch)
      : context_(std::move(context)),
        span_{context_->sources.add(name, ""), 0, 0},
        torch_(torch),
        arguments_(torch_, span_) {
    options_.file = name;
    options_.keep_stateful = keep_stateful;
    options_.computed_types = true;
  }

  void symbol(const std::string& name, std::int64_t least, std::int64_t most) {
    options_.ranges[name] = {least, most};
  }
  void schema(const std::string& target, const std::string& line) {
    options_.schemas[target] = line;
  }
  void input(const std::string& name, const std::string& type, const std::string& kind) {
    check_word(name);
    function_.parameters.push_back({name, span_, type, span_});
    if (kind == "weight") options_.kinds[name] = InputKind::weight;
    if (kind == "buffer") options_.kinds[name] = InputKind::buffer;
    if (kind == "input") options_.kinds[name] = InputKind::input;
  }
  /// A node that calls a function.
  void call(const py::object& node) {
    const NodeNames& names = torch_.names;
    std::string name = name_of(node);
    const std::string& target = torch_.target(attribute(node, names.target));
    const py::object meta = attribute(node, names.meta);
    const py::object value = py::reinterpret_borrow<py::object>(found(meta, names.val)),
                     stack = py::reinterpret_borrow<py::object>(found(meta, names.stack));
    fx::Statement statement;
    statement.span = statement.type_span = span_;
    statement.targets.push_back(arguments_.name(name));
    statement.type = torch_.type(value);
    if (PyTuple_Check(value.ptr()) || PyList_Check(value.ptr()))
      for (const py::handle part : value) torch_.type(part);  // which refuses some
    if (PyUnicode_Check(stack.ptr())) statement.source = place_of(text_of(stack));
    statement.value =
        is_known_number(target, value)
            ? arguments_.of(value, 0)
            : arguments_.call(target, attribute(node, names.args), attribute(node, names.kwargs));
    if (target != "operator.getitem" && !statement.type.starts_with("Sym(")) ++ops_;
    function_.statements.push_back(std::move(statement));
  }
  /// All of a graph, of which the pipeline's rules see only what they can match: of calls that none
  /// of them sees, what they read. The names of what it returns; None where more of it matters:
  /// writes, symbols, passes over all nodes. Then nothing may be told or converted.
  std::optional<std::vector<std::string>> tell_seen(const py::object& nodes, const PyRules& rules,
                                                    const std::string& pipeline) {
    const Strategy* const strategy = rules.set->strategy(pipeline);
    const auto ops = strategy == nullptr ? std::nullopt : matched_ops(*rules.set, *strategy);
    if (!ops) return std::nullopt;
    options_.no_writes = true;
    const std::optional<SeenGraph> seen = find_seen(nodes, torch_, context_, *ops);
    if (!seen || seen->outputs.empty()) return std::nullopt;
    std::vector<std::size_t> places(seen->nodes.size(), kUntold);
    for (std::uint32_t i = 0; i < places.size(); ++i) {
      const SeenNode& n = seen->nodes[i];
      if (n.telling == SeenNode::Telling::unseen) {
        places[i] = function_.statements.size();
        tell_unseen(n, *seen);
      } else if (n.telling == SeenNode::Telling::call) {
        for (const std::uint32_t read : n.reads)
          if (!tell_type(seen->nodes[read], places[read])) return std::nullopt;
        call(py::reinterpret_borrow<py::object>(n.node));
        if (is_symbolic(function_.statements.back().type)) return std::nullopt;
      }
    }
    std::vector<std::string> out;
    for (const std::uint32_t i : seen->outputs) out.push_back(name_of(seen->nodes[i].node));
    return out;
  }
  /// Those that are no parts of others' results, and no numbers.
  [[nodiscard]] std::int64_t ops() const { return ops_; }
  [[nodiscard]] std::string text() const {
    KeyText out;
    out.add(options_.keep_stateful ? "" : "own");
    for (const auto& [target, line] : options_.schemas) out.add(target + " " + line);
    for (const auto& [name, range] : options_.ranges)
      out.add(fmt::format("{} {} {}", name, range.first, range.second));
    for (const auto& [name, kind] : options_.kinds)
      out.add(fmt::format("{} {}", name, static_cast<int>(kind)));
    out.add(function_);
    return out.take();
  }
  /// The graph, and what the import says of it.
  py::dict convert(const py::tuple& outputs) {
    fx::Statement last;
    last.kind = fx::Statement::Kind::return_;
    last.span = last.type_span = span_;
    last.value = arguments_.of(outputs, 0);
    function_.statements.push_back(std::move(last));
    FxImport done = need(context_, import_fx(context_, std::move(function_), options_, "objects"));
    function_ = {};
    py::dict out;
    out["opaque"] = done.report.opaque;
    out["reasons"] = done.report.reasons;
    out["dropped"] = done.report.dropped;
    out["aliases"] = done.report.aliases;
    out["notes"] = done.report.notes;
    out["graph"] = PyGraph{context_, std::move(done.graph)};
    return out;
  }

 private:
  static constexpr std::size_t kUntold = ~std::size_t{0}, kTyped = kUntold - 1;

  [[nodiscard]] std::string name_of(const py::handle& node) const {
    std::string out(text_of(attribute(node, torch_.names.name)));
    check_word(out);
    return out;
  }

  void tell_unseen(const SeenNode& node, const SeenGraph& graph) {
    fx::Statement statement;
    statement.kind = fx::Statement::Kind::unseen;
    statement.span = statement.type_span = span_;
    statement.targets.push_back(arguments_.name(name_of(node.node)));
    statement.value.kind = fx::Expr::Kind::list;
    statement.value.args.reserve(node.reads.size());
    for (const std::uint32_t read : node.reads)
      statement.value.args.push_back(arguments_.name(name_of(graph.nodes[read].node)));
    function_.statements.push_back(std::move(statement));
  }

  /// What a call reads has a type, and is an input where no call makes it. `place`: its statement.
  /// False: the type has symbols.
  bool tell_type(const SeenNode& node, std::size_t& place) {
    if (place == kTyped || node.telling == SeenNode::Telling::call) return true;
    std::string type = torch_.type(torch_.value(node.node));
    const bool plain = !is_symbolic(type);
    if (node.telling == SeenNode::Telling::source)
      input(name_of(node.node), type, "input");
    else
      function_.statements[place].type = std::move(type);
    place = kTyped;
    return plain;
  }

  static bool is_symbolic(std::string_view type) {
    return type.find_first_not_of("0123456789, []", std::min(type.find('['), type.size())) !=
               std::string_view::npos ||
           type.starts_with("Sym(");
  }

  /// A number of a tensor's shape, where no symbol is in it.
  static bool is_known_number(std::string_view target, const py::handle& value) {
    return target.starts_with("torch.ops.aten.sym_") &&
           (PyBool_Check(value.ptr()) || PyLong_CheckExact(value.ptr()));
  }
  static py::handle found(const py::object& meta, const py::str& key) {
    PyObject* const value = PyDict_GetItem(meta.ptr(), key.ptr());
    return value != nullptr ? value : Py_None;
  }
  static void check_word(const std::string& name) {
    if (!fx::is_word(name)) throw mistake("PW1411", "`" + name + "` cannot name a value");
  }

  ContextPtr context_;
  fx::Function function_;
  FxOptions options_;
  Span span_;
  TorchObjects torch_;
  Arguments arguments_;
  std::int64_t ops_ = 0;
};

}  // namespace

void add_fx_graph(py::module_& module) {
  py::class_<Ref>(module, "Ref", "A value of a graph, or a name of torch's, among arguments.")
      .def(py::init<std::string>(), py::arg("name"))
      .def("__repr__", [](const Ref& ref) { return "Ref(" + ref.name + ")"; });
  py::class_<FxGraph>(module, "FxGraph", "A graph of torch.fx, told node by node.")
      .def(py::init<ContextPtr, const std::string&, bool, const py::object&>(), py::arg("session"),
           py::arg("name"), py::arg("keep_stateful"), py::arg("torch"),
           "`torch` has `node`, `tensor`, `strided`, `dtypes`, target(), leaf(), type() and "
           "purity()")
      .def("symbol", &FxGraph::symbol, py::arg("name"), py::arg("least"), py::arg("most"),
           "a symbol of shapes and its range")
      .def("schema", &FxGraph::schema, py::arg("target"), py::arg("line"),
           "the schema of an op, as torch prints it")
      .def("input", &FxGraph::input, py::arg("name"), py::arg("type"), py::arg("kind"),
           "the next input: its type in torch's notation; a weight, buffer, input or scalar")
      .def("call", &FxGraph::call, py::arg("node"), "the next node, which calls a function")
      .def("tell_seen", &FxGraph::tell_seen, py::arg("nodes"), py::arg("rules"),
           py::arg("pipeline"),
           "a whole graph, as far as the rules see it, and then what it returns; None: it must be "
           "told otherwise")
      .def_property_readonly("ops", &FxGraph::ops, "calls so far, without parts and numbers")
      .def("text", &FxGraph::text, "all that was told: equal where graphs are")
      .def("convert", &FxGraph::convert, py::arg("outputs"),
           "the graph, and what its import says of it");
}

}  // namespace pw::python
