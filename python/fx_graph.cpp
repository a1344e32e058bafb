// Exports add_fx_graph: a graph of torch.fx, told node by node, as the importer takes it. What is
// asked of every node is read here; what Python knows better, once for each object.
#include <string>
#include <string_view>
#include <unordered_map>
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

/// Attributes that every node is asked for, as Python's own strings.
struct Names {
  py::str name{"name"}, target{"target"}, args{"args"}, kwargs{"kwargs"}, meta{"meta"}, val{"val"},
      stack{"stack_trace"}, dtype{"dtype"}, layout{"layout"}, device{"device"}, shape{"shape"};
};

py::object attribute(const py::handle& object, const py::str& name) {
  PyObject* const value = PyObject_GetAttr(object.ptr(), name.ptr());
  if (value == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(value);
}

std::string_view text_of(const py::handle& value) {
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) throw py::error_already_set();
  return {text, static_cast<std::size_t>(size)};
}

/// What Python says of torch's objects, as `torch` of FxGraph's constructor has it: the types
/// `node` and `tensor`, `strided`, the names of `dtypes`, and the functions target(target) → its
/// text, leaf(value) → what stands for a value that no argument can be, and type(value) → its
/// type's text.
class TorchObjects {
 public:
  explicit TorchObjects(const py::object& torch)
      : node_(torch.attr("node")),
        tensor_(torch.attr("tensor")),
        strided_(torch.attr("strided")),
        target_(torch.attr("target")),
        leaf_(torch.attr("leaf")),
        type_(torch.attr("type")),
        dtypes_(torch.attr("dtypes")) {}

  const Names names;

  [[nodiscard]] bool is_node(const py::handle& value) const {
    return py::type::handle_of(value).is(node_);
  }
  [[nodiscard]] py::object leaf(const py::handle& value) const { return leaf_(value); }

  /// A target's text; asked once.
  const std::string& target(const py::object& target) {
    const auto [entry, first] = targets_.try_emplace(target.ptr());
    if (first) entry->second = {target, target_(target).cast<std::string>()};
    return entry->second.second;
  }

  /// As torch prints a type, f32[s0, 64] or Sym(s0); empty for what is neither a tensor nor a
  /// number.
  std::string type(const py::handle& value) {
    if (value.is_none() || PyTuple_Check(value.ptr()) || PyList_Check(value.ptr())) return {};
    if (PyType_IsSubtype(Py_TYPE(value.ptr()), type_object(tensor_)) == 0) return told_type(value);
    const py::object dtype = attribute(value, names.dtype);
    PyObject* const name = PyDict_GetItem(dtypes_.ptr(), dtype.ptr());
    if (name == nullptr || !attribute(value, names.layout).is(strided_) ||
        !is_known(attribute(value, names.device)))
      return told_type(value);
    std::string out = py::handle(name).cast<std::string>();
    char before = '[';
    for (const py::handle extent : attribute(value, names.shape)) {
      out += before;
      if (before == ',') out += ' ';
      out += PyLong_CheckExact(extent.ptr()) ? std::to_string(extent.cast<std::int64_t>())
                                             : py::str(extent).cast<std::string>();
      before = ',';
    }
    if (before == '[') out += '[';
    return out += ']';
  }

 private:
  static PyTypeObject* type_object(const py::object& type) {
    return reinterpret_cast<PyTypeObject*>(type.ptr());
  }
  std::string told_type(const py::handle& value) const { return type_(value).cast<std::string>(); }
  /// Whether it is the processor, of which most tensors have one object.
  bool is_known(const py::object& device) {
    if (device.is(cpu_)) return true;
    if (device.attr("type").cast<std::string_view>() != "cpu") return false;
    cpu_ = device;
    return true;
  }

  py::object node_, tensor_, strided_, target_, leaf_, type_, dtypes_, cpu_;
  std::unordered_map<PyObject*, std::pair<py::object, std::string>> targets_;
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
    const Names& names = torch_.names;
    const auto name = std::string(text_of(attribute(node, names.name)));
    const std::string& target = torch_.target(attribute(node, names.target));
    const py::object meta = attribute(node, names.meta);
    const py::object value = py::reinterpret_borrow<py::object>(found(meta, names.val)),
                     stack = py::reinterpret_borrow<py::object>(found(meta, names.stack));
    check_word(name);
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
           "`torch` has `node`, `tensor`, `strided`, `dtypes`, target(), leaf() and type()")
      .def("symbol", &FxGraph::symbol, py::arg("name"), py::arg("least"), py::arg("most"),
           "a symbol of shapes and its range")
      .def("schema", &FxGraph::schema, py::arg("target"), py::arg("line"),
           "the schema of an op, as torch prints it")
      .def("input", &FxGraph::input, py::arg("name"), py::arg("type"), py::arg("kind"),
           "the next input: its type in torch's notation; a weight, buffer, input or scalar")
      .def("call", &FxGraph::call, py::arg("node"), "the next node, which calls a function")
      .def_property_readonly("ops", &FxGraph::ops, "calls so far, without parts and numbers")
      .def("text", &FxGraph::text, "all that was told: equal where graphs are")
      .def("convert", &FxGraph::convert, py::arg("outputs"),
           "the graph, and what its import says of it");
}

}  // namespace pw::python
