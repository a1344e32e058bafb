// Exports add_fx_graph: a graph of torch.fx, told call by call, as the importer takes it.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include "graph/import/fx.hpp"
#include "graph/import/fx_ast.hpp"
#include "python/module.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

constexpr int kDeepest = fx::kMaxNesting;

/// What an argument refers to instead of being it: a value of the graph, or a name of torch's, such
/// as torch.float32.
struct Ref {
  std::string name;
};

fx::Expr expr_of(const py::handle& object, const Span& span, int depth = 0);

fx::Expr list_of(const py::handle& object, const Span& span, int depth, fx::Expr::Kind kind) {
  fx::Expr out;
  out.kind = kind;
  out.span = span;
  for (const py::handle item : object) out.args.push_back(expr_of(item, span, depth + 1));
  return out;
}

fx::Expr call_of(std::string text, const py::handle& positional, const py::handle& keywords,
                 const Span& span, int depth) {
  fx::Expr out = list_of(positional, span, depth, fx::Expr::Kind::call);
  out.text = std::move(text);
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(keywords)) {
    out.keywords.push_back(py::str(key).cast<std::string>());
    out.args.push_back(expr_of(value, span, depth + 1));
  }
  return out;
}

fx::Expr expr_of(const py::handle& object, const Span& span, int depth) {
  using ExprKind = fx::Expr::Kind;
  if (depth > kDeepest) throw mistake("PW1411", "an argument is nested too deeply");
  fx::Expr out;
  out.span = span;
  if (object.is_none()) return out;
  if (py::isinstance<Ref>(object)) {
    out.kind = ExprKind::name;
    out.text = object.cast<Ref>().name;
  } else if (py::isinstance<py::bool_>(object)) {
    out.kind = ExprKind::boolean;
    out.integer = object.cast<bool>() ? 1 : 0;
  } else if (py::isinstance<py::int_>(object)) {
    out.kind = ExprKind::integer;
    out.integer = object.cast<std::int64_t>();
  } else if (py::isinstance<py::float_>(object)) {
    out.kind = ExprKind::real;
    out.real = object.cast<double>();
  } else if (py::isinstance<py::str>(object)) {
    out.kind = ExprKind::string;
    out.text = object.cast<std::string>();
  } else if (py::isinstance<py::tuple>(object)) {
    return list_of(object, span, depth, ExprKind::tuple);
  } else if (py::isinstance<py::list>(object)) {
    return list_of(object, span, depth, ExprKind::list);
  } else if (py::isinstance<py::dict>(object)) {
    return call_of("dict", py::tuple(), object, span, depth);
  } else if (py::isinstance<py::slice>(object)) {
    return call_of("slice",
                   py::make_tuple(object.attr("start"), object.attr("stop"), object.attr("step")),
                   py::dict(), span, depth);
  } else {
    throw mistake("PW1411", fmt::format("an argument is a {}, which no call of a graph has",
                                        py::str(py::type::of(object)).cast<std::string>()));
  }
  return out;
}

class FxGraph {
 public:
  FxGraph(ContextPtr context, const std::string& name, bool keep_stateful)
      : context_(std::move(context)) {
    options_.file = name;
    options_.keep_stateful = keep_stateful;
    span_ = {context_->sources.add(name, ""), 0, 0};
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
  void call(const std::string& name, const std::string& target, const py::tuple& positional,
            const py::dict& keywords, const std::string& type, const std::string& source) {
    check_word(name);
    fx::Statement statement;
    statement.span = statement.type_span = span_;
    statement.targets.push_back(expr_of(py::cast(Ref{name}), span_));
    statement.type = type;
    statement.source = source;
    statement.value = call_of(target, positional, keywords, span_, 0);
    function_.statements.push_back(std::move(statement));
  }
  /// The graph, and what the import says of it.
  py::dict convert(const py::tuple& outputs) {
    fx::Statement last;
    last.kind = fx::Statement::Kind::return_;
    last.span = last.type_span = span_;
    last.value = expr_of(outputs, span_);
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
  static void check_word(const std::string& name) {
    if (!fx::is_word(name)) throw mistake("PW1411", "`" + name + "` cannot name a value");
  }

  ContextPtr context_;
  fx::Function function_;
  FxOptions options_;
  Span span_;
};

}  // namespace

void add_fx_graph(py::module_& module) {
  py::class_<Ref>(module, "Ref", "A value of a graph, or a name of torch's, among arguments.")
      .def(py::init<std::string>(), py::arg("name"))
      .def("__repr__", [](const Ref& ref) { return "Ref(" + ref.name + ")"; });
  py::class_<FxGraph>(module, "FxGraph", "A graph of torch.fx, told call by call.")
      .def(py::init<ContextPtr, const std::string&, bool>(), py::arg("session"), py::arg("name"),
           py::arg("keep_stateful"))
      .def("symbol", &FxGraph::symbol, py::arg("name"), py::arg("least"), py::arg("most"),
           "a symbol of shapes and its range")
      .def("schema", &FxGraph::schema, py::arg("target"), py::arg("line"),
           "the schema of an op, as torch prints it")
      .def("input", &FxGraph::input, py::arg("name"), py::arg("type"), py::arg("kind"),
           "the next input: its type in torch's notation; a weight, buffer, input or scalar")
      .def("call", &FxGraph::call, py::arg("name"), py::arg("target"), py::arg("args"),
           py::arg("kwargs"), py::arg("type"), py::arg("source"),
           "the next call, with the names of values as Ref")
      .def("convert", &FxGraph::convert, py::arg("outputs"),
           "the graph, and what its import says of it");
}

}  // namespace pw::python
