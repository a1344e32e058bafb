// Describes what a pipeline did to a graph, so that another graph of the same calls can be changed
// in the same way.
#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include "codegen/rowprogram/row_program.hpp"
#include "python/module.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

/// An attribute of a torch call: dims are numbers. Fails with PW1411 for a symbolic dim, except for
/// a single one of a reshape, which torch infers.
struct AttributeObject {
  const Context& context;
  bool infers = false;

  [[nodiscard]] std::int64_t number(DimId dim) const {
    if (const auto value = context.dims.evaluate(dim, {})) return *value;
    throw mistake("PW1411", "an attribute of a new call is the symbolic dim " +
                                context.dims.print(dim) + ", which torch calls cannot take");
  }
  py::object operator()(None) const { return py::none(); }
  py::object operator()(DimId dim) const { return py::cast(number(dim)); }
  py::object operator()(DType dtype) const { return py::str(std::string(name(dtype))); }
  py::object operator()(const std::vector<DimId>& dims) const {
    const auto symbolic = [&](DimId dim) { return !context.dims.evaluate(dim, {}); };
    const bool inferred = infers && std::count_if(dims.begin(), dims.end(), symbolic) == 1;
    py::list out;
    for (DimId dim : dims) out.append(inferred && symbolic(dim) ? -1 : number(dim));
    return out;
  }
  template <class T>
  py::object operator()(const T& value) const {
    return py::cast(value);
  }
};

/// Two versions of a graph whose nodes have the same ids: the later one is a rewritten copy of the
/// other.
class Changes {
 public:
  Changes(const Graph& before, const Graph& after) : before_(before), after_(after) {}

  [[nodiscard]] py::dict summary() const {
    py::list made, moved, gone;
    for (NodeId n : after_.order())
      if (is_new(n))
        made.append(call(n));
      else
        add_moved(n, moved);
    for (NodeId n : before_.order())
      if (!after_.alive(n))
        for (std::size_t i = 0; i < before_.result_count(n); ++i)
          gone.append(std::string(before_.value_name(before_.result(n, i))));
    py::dict out;
    out["made"] = made;
    out["moved"] = moved;
    out["outputs"] = outputs();
    out["gone"] = gone;
    return out;
  }

  /// Returns a new call as a graph of its own, and the references to what its inputs are.
  [[nodiscard]] py::tuple alone(NodeId n) const {
    std::vector<ValueId> inputs, outputs;
    PyGraph out{after_.context_ptr(), rows::isolate(after_, {&n, 1}, inputs, outputs)};
    py::list references;
    for (const ValueId v : inputs) references.append(reference(v));
    return py::make_tuple(std::move(out), references);
  }

 private:
  [[nodiscard]] bool is_new(NodeId n) const { return n.index >= before_.node_bound(); }
  /// Returns the former name of a value that existed before; otherwise a name that no value has.
  [[nodiscard]] std::string reference(ValueId v) const {
    if (v.index < before_.value_bound()) return std::string(before_.value_name(v));
    return fmt::format("#{}", v.index);
  }

  /// (op, operands, attributes, results as (reference, name taken over), number).
  [[nodiscard]] py::tuple call(NodeId n) const {
    py::list operands, results;
    for (ValueId v : after_.operands(n))
      operands.append(v.valid() ? py::object(py::str(reference(v))) : py::none());
    for (std::size_t i = 0; i < after_.result_count(n); ++i) {
      const ValueId v = after_.result(n, i);
      results.append(py::make_tuple(reference(v), std::string(after_.value_name(v))));
    }
    py::dict attributes;
    const Context& context = after_.context();
    const bool infers = after_.op_of(n).primitive == Primitive::reshape;
    for (const auto& [id, value] : context.attributes[after_.attributes(n)])
      attributes[py::str(std::string(context.strings.text(id)))] =
          std::visit(AttributeObject{context, infers}, value);
    return py::make_tuple(after_.op_of(n).name, operands, attributes, results, n.index);
  }

  /// (the user's first result, old operand, new operand), for each operand that changed.
  void add_moved(NodeId n, py::list& out) const {
    const std::string user = reference(after_.result(n));
    if (after_.op(n) != before_.op(n) || after_.attributes(n) != before_.attributes(n))
      throw mistake("PW1411", "the call that makes `" + user + "` was changed in place");
    for (std::size_t i = 0; i < after_.operand_count(n); ++i)
      if (after_.operand(n, i) != before_.operand(n, i))
        out.append(py::make_tuple(user, reference(before_.operand(n, i)),
                                  reference(after_.operand(n, i))));
  }

  /// (old output, new output), for each output that changed.
  [[nodiscard]] py::list outputs() const {
    py::list out;
    for (std::size_t i = 0; i < after_.outputs().size(); ++i)
      if (after_.outputs()[i] != before_.outputs()[i])
        out.append(py::make_tuple(reference(before_.outputs()[i]), reference(after_.outputs()[i])));
    return out;
  }

  const Graph &before_, &after_;
};

}  // namespace

void add_changes(py::module_& module) {
  const auto changes = [](const PyGraph& before, const PyGraph& after) {
    if (before.context != after.context || after.graph.node_bound() < before.graph.node_bound())
      throw mistake("PW1412", "the second graph is not a rewritten version of the first");
    return Changes(before.graph, after.graph);
  };
  module.def(
      "new_call",
      [changes](const PyGraph& before, const PyGraph& after, std::uint32_t number) {
        const NodeId node(number);
        if (number >= after.graph.node_bound() || !after.graph.alive(node))
          throw mistake("PW1412", "the second graph does not have this call");
        return changes(before, after).alone(node);
      },
      py::arg("before"), py::arg("after"), py::arg("number"),
      "Returns a call that a run made as a graph of its own, and the values that it reads, as "
      "changes() names them.");
  module.def(
      "changes",
      [changes](const PyGraph& before, const PyGraph& after) {
        return changes(before, after).summary();
      },
      py::arg("before"), py::arg("after"),
      "Returns what a run changed between Run.before() and Run.graph: `made` (op, operands, "
      "attributes, results with the names they took over, number), in order; `moved` (user, old "
      "operand, "
      "new operand); `outputs` (before, after); `gone`, the former names of removed values.");
}

}  // namespace pw::python
