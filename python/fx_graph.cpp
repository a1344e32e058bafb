// Feeds a torch.fx graph to the importer node by node. Attributes of every node are read here; for
// facts that Python determines more easily, Python is called once for each object.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include "import/fx/fx.hpp"
#include "import/fx/module_path.hpp"
#include "import/fx/text/ast.hpp"
#include "python/module.hpp"
#include "python/seen_import.hpp"
#include "python/torch_arguments.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

/// Converts arguments of torch calls to expressions of the importer.
class ExprMaker {
 public:
  using Made = fx::Expr;
  ExprMaker(const TorchObjects& torch, const Span& span) : torch_(torch), span_(span) {}

  [[nodiscard]] Made of(const py::handle& object) { return torch_argument(torch_, *this, object); }
  [[nodiscard]] Made call(std::string text, const py::handle& positional,
                          const py::handle& keywords) {
    Made out = of(positional);
    out.kind = Kind::call;
    out.text = std::move(text);
    for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(keywords)) {
      out.keywords.push_back(py::str(key).cast<std::string>());
      out.args.push_back(of(value));
    }
    return out;
  }

  [[nodiscard]] Made node(const py::handle& node) const {
    return word(std::string(text_of(attribute(node, torch_.names.name))));
  }
  [[nodiscard]] Made word(std::string text) const { return texts(Kind::name, std::move(text)); }
  [[nodiscard]] Made text(std::string text) const { return texts(Kind::string, std::move(text)); }
  [[nodiscard]] Made none() const { return empty(Kind::none); }
  [[nodiscard]] Made boolean(bool value) const { return whole(Kind::boolean, value ? 1 : 0); }
  [[nodiscard]] Made integer(std::int64_t value) const { return whole(Kind::integer, value); }
  [[nodiscard]] Made real(double value) const {
    Made out = empty(Kind::real);
    out.real = value;
    return out;
  }
  [[nodiscard]] Made list(std::vector<Made> items, bool tuple) const {
    Made out = empty(tuple ? Kind::tuple : Kind::list);
    out.args = std::move(items);
    return out;
  }
  [[nodiscard]] Made slice(Made start, Made stop, Made step) const {
    Made out = texts(Kind::call, "slice");
    out.args = {std::move(start), std::move(stop), std::move(step)};
    return out;
  }
  [[nodiscard]] Made dict(std::vector<std::pair<std::string, Made>> items) const {
    Made out = texts(Kind::call, "dict");
    for (auto& [key, value] : items) {
      out.keywords.push_back(std::move(key));
      out.args.push_back(std::move(value));
    }
    return out;
  }

 private:
  using Kind = fx::Expr::Kind;

  [[nodiscard]] Made empty(Kind kind) const {
    Made out;
    out.kind = kind;
    out.span = span_;
    return out;
  }
  [[nodiscard]] Made whole(Kind kind, std::int64_t value) const {
    Made out = empty(kind);
    out.integer = value;
    return out;
  }
  [[nodiscard]] Made texts(Kind kind, std::string text) const {
    Made out = empty(kind);
    out.text = std::move(text);
    return out;
  }

  const TorchObjects& torch_;
  Span span_;
};

/// Returns path:line of the innermost frame of a stack printed by torch; empty if there is none.
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

/// Returns a text that is equal for equal graphs.
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
  FxGraph(ContextPtr context, const std::string& name, bool keep_stateful, bool keep_idle,
          const py::object& torch)
      : context_(std::move(context)),
        span_{context_->sources.add(name, ""), 0, 0},
        torch_(torch),
        arguments_(torch_, span_) {
    options_.file = name;
    options_.keep_stateful = keep_stateful;
    options_.keep_idle = keep_idle;
    options_.computed_types = true;
  }

  void symbol(const std::string& name, std::int64_t least, std::int64_t most,
              std::int64_t multiple) {
    options_.ranges[name] = {least, most};
    if (multiple > 1) options_.multiples[name] = multiple;
  }
  void equal(std::string a, std::string b) {
    options_.equal.emplace_back(std::move(a), std::move(b));
  }
  void schema(const std::string& target, const std::string& line) {
    options_.schemas[target] = line;
  }
  void input(const std::string& name, const std::string& type, const std::string& kind) {
    check_value_name(name);
    function_.parameters.push_back({name, span_, type, span_});
    if (kind == "weight") options_.kinds[name] = InputKind::weight;
    if (kind == "buffer") options_.kinds[name] = InputKind::buffer;
    if (kind == "input") options_.kinds[name] = InputKind::input;
  }
  /// A node that calls a function.
  void call(const py::object& node) {
    const NodeNames& names = torch_.names;
    std::string name = torch_.name(node);
    const std::string& target = torch_.target(attribute(node, names.target));
    const py::object meta = attribute(node, names.meta);
    const py::object value = py::reinterpret_borrow<py::object>(found(meta, names.val)),
                     stack = py::reinterpret_borrow<py::object>(found(meta, names.stack));
    fx::Statement statement;
    statement.span = statement.type_span = span_;
    statement.targets.push_back(arguments_.word(name));
    statement.type = torch_.type(value);
    if (PyTuple_Check(value.ptr()) || PyList_Check(value.ptr()))
      for (const py::handle part : value) torch_.type(part);  // which refuses some
    if (PyUnicode_Check(stack.ptr())) statement.source = place_of(text_of(stack));
    statement.group = group_of(meta);
    statement.value =
        is_known_number(target, value)
            ? arguments_.of(value)
            : arguments_.call(target, attribute(node, names.args), attribute(node, names.kwargs));
    if (target != "operator.getitem" && !statement.type.starts_with("Sym(")) ++ops_;
    function_.statements.push_back(std::move(statement));
  }
  /// Returns the values that are neither parts of other results nor numbers.
  [[nodiscard]] std::int64_t ops() const { return ops_; }
  [[nodiscard]] std::string text() const {
    KeyText out;
    out.add(options_.keep_stateful ? "" : "own");
    for (const auto& [target, line] : options_.schemas) out.add(target + " " + line);
    for (const auto& [name, range] : options_.ranges)
      out.add(fmt::format("{} {} {}", name, range.first, range.second));
    for (const auto& [name, multiple] : options_.multiples)
      out.add(fmt::format("{} {}", name, multiple));
    for (const auto& [a, b] : options_.equal) out.add(a + " = " + b);
    for (const auto& [name, kind] : options_.kinds)
      out.add(fmt::format("{} {}", name, static_cast<int>(kind)));
    out.add(function_);
    return out.take();
  }
  /// Returns the graph with the messages of its import.
  py::dict convert(const py::tuple& outputs) {
    fx::Statement last;
    last.kind = fx::Statement::Kind::return_;
    last.span = last.type_span = span_;
    last.value = arguments_.of(outputs);
    function_.statements.push_back(std::move(last));
    FxImport done = need(context_, import_fx(context_, std::move(function_), options_, "objects"));
    function_ = {};
    return summary_of(context_, std::move(done));
  }

 private:
  /// A number of a tensor's shape, if it contains no symbol.
  static bool is_known_number(std::string_view target, const py::handle& value) {
    return target.starts_with("torch.ops.aten.sym_") &&
           (PyBool_Check(value.ptr()) || PyLong_CheckExact(value.ptr()));
  }
  /// The group of the modules that the node was called in; of a backward node, that of the forward.
  [[nodiscard]] std::string group_of(const py::object& meta) const {
    py::handle stack = found(meta, torch_.names.modules);
    if (!PyDict_Check(stack.ptr())) stack = found(meta, torch_.names.forward_modules);
    if (!PyDict_Check(stack.ptr())) return {};
    fx::ModuleStack modules;
    for (const auto& [key, entry] : py::reinterpret_borrow<py::dict>(stack)) {
      if (!PyUnicode_Check(key.ptr()) || !PyTuple_Check(entry.ptr()) ||
          PyTuple_GET_SIZE(entry.ptr()) == 0)
        return {};
      const py::handle path = PyTuple_GET_ITEM(entry.ptr(), 0);
      if (!PyUnicode_Check(path.ptr())) return {};
      modules.enter(text_of(key), text_of(path));
    }
    return modules.group();
  }
  static py::handle found(const py::object& meta, const py::str& key) {
    PyObject* const value = PyDict_GetItem(meta.ptr(), key.ptr());
    return value != nullptr ? value : Py_None;
  }

  ContextPtr context_;
  fx::Function function_;
  FxOptions options_;
  Span span_;
  TorchObjects torch_;
  ExprMaker arguments_;
  std::int64_t ops_ = 0;
};

}  // namespace

void add_fx_graph(py::module_& module) {
  py::class_<Ref>(module, "Ref", "A graph value or a torch name in an argument.")
      .def(py::init<std::string>(), py::arg("name"))
      .def("__repr__", [](const Ref& ref) { return "Ref(" + ref.name + ")"; });
  py::class_<FxGraph>(module, "FxGraph", "A torch.fx graph, imported node by node.")
      .def(py::init<ContextPtr, const std::string&, bool, bool, const py::object&>(),
           py::arg("session"), py::arg("name"), py::arg("keep_stateful"), py::arg("keep_idle"),
           py::arg("torch"),
           "`torch` has `node`, `tensor`, `strided`, `dtypes`, target(), leaf(), type() and "
           "purity()")
      .def("symbol", &FxGraph::symbol, py::arg("name"), py::arg("least"), py::arg("most"),
           py::arg("multiple") = 1, "Adds a shape symbol with its range and known divisor.")
      .def("equal", &FxGraph::equal, py::arg("a"), py::arg("b"),
           "Adds two sizes, as torch prints them, that are equal in every call of the graph.")
      .def("schema", &FxGraph::schema, py::arg("target"), py::arg("line"),
           "Adds the schema of an op, as torch prints it.")
      .def("input", &FxGraph::input, py::arg("name"), py::arg("type"), py::arg("kind"),
           "Adds the next input: its type in torch's notation; a weight, buffer, input or scalar.")
      .def("call", &FxGraph::call, py::arg("node"), "Adds the next node, which calls a function.")
      .def_property_readonly("ops", &FxGraph::ops,
                             "the number of calls so far, without parts and numbers")
      .def("text", &FxGraph::text, "Returns a text that is equal for equal graphs.")
      .def("convert", &FxGraph::convert, py::arg("outputs"),
           "Returns the graph, with the messages of its import.");
}

}  // namespace pw::python
