#include "backends/host_functions.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "backends/host_arguments.hpp"
#include "base/try.hpp"
#include "graph/passes/writes.hpp"

namespace pw {
namespace {

constexpr std::string_view kSkeleton = "call", kWrites = "writes", kShared = "shared";

/// Returns true for arguments; some attributes only describe how a node is called.
bool is_argument(std::string_view name) {
  return name != kSkeleton && name != kWrites && name != kShared;
}

std::string place_of(const Graph& graph, NodeId node) {
  return fmt::format("graph {} at node {}", graph.name, graph.node_name(node));
}

/// The call of a node, with unevaluated attributes.
struct Callee {
  std::string op;
  std::vector<HostArgument> skeleton;
  std::vector<std::optional<std::size_t>> contents;  ///< by result: see contents_of_results
  std::vector<std::size_t> writes;                   ///< operands, ascending
  std::vector<bool> typed;                           ///< by result
};

struct Evaluator {
  const Context& context;
  const Symbols& symbols;
  DimId& missing;  ///< a dim without a value

  std::int64_t number(DimId dim) const {
    const auto value = context.dims.evaluate(dim, symbols);
    if (!value) missing = dim;
    return value.value_or(0);
  }
  HostValue operator()(None) const { return {}; }
  HostValue operator()(bool value) const { return value; }
  HostValue operator()(std::int64_t value) const { return value; }
  HostValue operator()(double value) const { return value; }
  HostValue operator()(const std::string& value) const { return value; }
  HostValue operator()(DType value) const { return value; }
  HostValue operator()(DimId value) const { return number(value); }
  HostValue operator()(const std::vector<DimId>& dims) const {
    std::vector<std::int64_t> out;
    for (DimId dim : dims) out.push_back(number(dim));
    return out;
  }
  HostValue operator()(const std::vector<double>& value) const { return value; }
  HostValue operator()(const std::vector<std::string>& value) const { return value; }
};

/// Fills in the values of the attributes that a skeleton names.
void fill(std::vector<HostArgument>& arguments, const std::map<std::string, HostValue>& values) {
  for (HostArgument& argument : arguments) {
    fill(argument.items, values);
    if (argument.kind != HostArgument::Kind::value || argument.word.empty()) continue;
    argument.value = values.at(argument.word);
  }
}

/// Returns true if every operand and attribute that a skeleton names exists.
bool fits(const std::vector<HostArgument>& arguments, std::size_t operands,
          const std::vector<std::string>& attributes) {
  return std::all_of(arguments.begin(), arguments.end(), [&](const HostArgument& a) {
    if (!fits(a.items, operands, attributes)) return false;
    if (a.kind == HostArgument::Kind::operand) return a.operand < operands;
    return a.kind != HostArgument::Kind::value || a.word.empty() ||
           std::find(attributes.begin(), attributes.end(), a.word) != attributes.end();
  });
}

std::vector<std::string> attribute_names(const Graph& graph, NodeId node) {
  std::vector<std::string> out;
  for (const auto& [id, value] : graph.context().attributes[graph.attributes(node)]) {
    std::string name(graph.context().strings.text(id));
    if (is_argument(name)) out.push_back(std::move(name));
  }
  return out;
}

Result<std::vector<HostArgument>> skeleton_of(const Graph& graph, NodeId node) {
  const std::vector<std::string> attributes = attribute_names(graph, node);
  const Attribute* given = graph.attribute(node, kSkeleton);
  const auto* text = given == nullptr ? nullptr : std::get_if<std::string>(given);
  if (text == nullptr) return plain_skeleton(graph.operand_count(node), attributes);
  auto read = read_skeleton(*text, place_of(graph, node));
  if (!read || fits(*read, graph.operand_count(node), attributes)) return read;
  return fail(error_in(
      place_of(graph, node), "PW1213",
      fmt::format("the call's skeleton `{}` names an operand or attribute that the node lacks",
                  *text)));
}

/// A result without a type is not passed on, so it must have no readers.
Status check_types(const Graph& graph, NodeId node) {
  const std::string& op = graph.op_of(node).name;
  const auto refuse = [&](ValueId v, const std::string& what) {
    return fail(error_in(
        place_of(graph, node), "PW1213",
        fmt::format("{} `{}` of op {} has no type, so it has no tensor", what, graph.value_name(v),
                    op),
        fmt::format("declare the types: `op {}(x: T[*s]) -> y: T[*s]` in a .pwr file, with its "
                    "own operands and results",
                    op)));
  };
  for (std::size_t r = 0; r < graph.result_count(node); ++r) {
    const ValueId v = graph.result(node, r);
    if (graph.type(v) == Types::unknown() && !graph.unused(v)) return refuse(v, "result");
  }
  for (ValueId v : graph.operands(node))
    if (v.valid() && graph.type(v) == Types::unknown() && !graph.is_input(v))
      return refuse(v, "operand");
  return {};
}

TensorView view_of(const Array& array) { return {array.dtype, array.extents, array.data}; }

/// Returns the leading part of an array with the given extents.
Array corner(const Array& array, const Extents& extents) {
  Array out = array;
  out.extents = extents;
  return out;
}

/// Row-major, in the declared dtype.
Array declared(const Array& array, DType dtype) {
  if (array.dtype == dtype) return contiguous(array);
  Array out = make_array(dtype, array.extents);
  copy(array, out);
  return out;
}

/// Returns the symbols without padding rows: a function may let rows affect each other, so it must
/// not see padding.
Symbols valid_symbols(const Call& call) {
  Symbols out = call.context.symbols;
  const std::string tokens = call.graph.facts.tokens();
  if (call.context.valid != 0 && !tokens.empty()) out[tokens] = call.context.valid;
  return out;
}

/// The buffers of one call and the owners of their memory.
class Frame {
 public:
  Frame(const Callee& callee, Call& call)
      : callee_(callee), call_(call), symbols_(valid_symbols(call)) {}

  Status run(const HostFunction& function) {
    if (auto done = fill_attributes(); !done) return done;
    if (auto done = make_results(); !done) return done;
    if (auto done = pass_operands(); !done) return done;
    if (auto done = function(host_); !done) return done;
    keep_results();
    return {};
  }

 private:
  Status fill_attributes() {
    const Context& context = call_.graph.context();
    DimId missing;
    const Evaluator evaluator{context, symbols_, missing};
    std::map<std::string, HostValue> values;
    for (const auto& [id, value] : context.attributes[call_.graph.attributes(call_.node)]) {
      std::string name(context.strings.text(id));
      if (is_argument(name)) values.emplace(std::move(name), std::visit(evaluator, value));
    }
    if (missing.valid())
      return fail_call(
          call_, "PW1202",
          fmt::format("dim {} of an attribute has no value here", context.dims.print(missing)));
    host_.op = callee_.op;
    host_.node = call_.graph.node_name(call_.node);
    host_.rank = call_.on_rank;
    host_.writes = callee_.writes;
    host_.arguments = callee_.skeleton;
    fill(host_.arguments, values);
    host_.attributes.assign(values.begin(), values.end());
    return {};
  }

  Result<Extents> valid_extents(ValueId value) const {
    return extents_of(call_.graph, value, symbols_);
  }

  /// Returns new memory of the declared dtype, or the engine's own if the dtypes agree.
  Status make_results() {
    buffers_.resize(call_.results.size());
    for (std::size_t r = 0; r < buffers_.size(); ++r) {
      if (!callee_.typed[r]) {
        if (!callee_.contents[r]) host_.results.push_back({DType::u8, {0}, nullptr});
        continue;
      }
      const DType dtype = call_.result_dtype(r);
      auto extents = PW_TRY(valid_extents(call_.graph.result(call_.node, r)));
      const bool own = call_.storage(dtype) == dtype && extents == call_.extents[r];
      buffers_[r] = own ? call_.result(r) : make_array(dtype, extents);
      if (const auto written = callee_.contents[r])
        copy(corner(call_.operand(*written), extents), buffers_[r]);
      else
        host_.results.push_back(view_of(buffers_[r]));
    }
    return {};
  }

  /// Returns the result that an operand's buffer becomes. Equal values are not one tensor: if a
  /// tensor occurs twice in a call, its skeleton names one operand twice.
  [[nodiscard]] std::optional<std::size_t> buffer_of(std::size_t operand) const {
    for (std::size_t r = 0; r < callee_.contents.size(); ++r)
      if (callee_.contents[r] == operand && callee_.typed[r]) return r;
    return std::nullopt;
  }

  /// Passes a written operand as the buffer of its new contents.
  Status pass_operands() {
    const std::vector<ValueId> values = call_.graph.operands(call_.node);
    for (std::size_t i = 0; i < call_.operands.size(); ++i) {
      if (call_.operands[i] == nullptr || call_.graph.type(values[i]) == Types::unknown()) {
        host_.operands.emplace_back();
        continue;
      }
      if (const auto r = buffer_of(i)) {
        host_.operands.emplace_back(view_of(buffers_[*r]));
        continue;
      }
      auto extents = PW_TRY(valid_extents(values[i]));
      held_.push_back(declared(corner(call_.operand(i), extents), call_.operand_dtype(i)));
      host_.operands.emplace_back(view_of(held_.back()));
    }
    return {};
  }

  void keep_results() {
    for (std::size_t r = 0; r < buffers_.size(); ++r) {
      if (!callee_.typed[r]) continue;
      if (call_.results[r].data != nullptr) continue;
      const Array& whole = call_.result(r);
      if (whole.extents != buffers_[r].extents) fill_padding(r, whole);
      copy(buffers_[r], corner(whole, buffers_[r].extents));
    }
  }

  /// Padding of contents is unchanged; padding of results is 0.
  void fill_padding(std::size_t r, const Array& whole) {
    if (callee_.contents[r])
      copy(call_.operand(*callee_.contents[r]), whole);
    else
      std::memset(
          whole.data, 0,
          static_cast<std::size_t>(whole.count()) * static_cast<std::size_t>(size_of(whole.dtype)));
  }

  const Callee& callee_;
  Call& call_;
  Symbols symbols_;
  HostCall host_;
  std::vector<Array> buffers_, held_;
};

}  // namespace

const HostFunction* host_function(const Context& context, std::string_view op) {
  if (context.host_functions == nullptr) return nullptr;
  const auto& known = context.host_functions->by_op;
  if (const auto found = known.find(op); found != known.end()) return &found->second;
  const std::size_t dot = op.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  const auto found = known.find(op.substr(0, dot));
  return found == known.end() ? nullptr : &found->second;
}

void give_host_function(Context& context, std::string op, HostFunction function) {
  if (context.host_functions == nullptr) context.host_functions = std::make_shared<HostFunctions>();
  context.host_functions->by_op.insert_or_assign(std::move(op), std::move(function));
}

std::vector<std::optional<std::size_t>> contents_of_results(const Graph& graph, NodeId node) {
  std::vector<std::optional<std::size_t>> out(graph.result_count(node));
  const Op& op = graph.op_of(node);
  for (std::size_t r = 0; r < out.size() && r < op.results.size(); ++r) {
    if (!op.results[r].from) continue;
    const auto operand = static_cast<std::size_t>(*op.results[r].from);
    if (operand < op.operands.size() && (op.operands[operand].mut || op.operands[operand].out))
      out[r] = operand;
  }
  const Attribute* given = graph.attribute(node, kWrites);
  const auto* writes = given == nullptr ? nullptr : std::get_if<std::vector<DimId>>(given);
  if (writes == nullptr || writes->size() > out.size()) return out;
  for (std::size_t i = 0; i < writes->size(); ++i) {
    const auto operand = graph.context().dims.value((*writes)[i]);
    if (operand && *operand >= 0 &&
        static_cast<std::size_t>(*operand) < graph.operand_count(node) &&
        graph.operand(node, static_cast<std::size_t>(*operand)).valid())
      out[out.size() - writes->size() + i] = static_cast<std::size_t>(*operand);
  }
  return out;
}

bool has_host_function(const Graph& graph, NodeId node) {
  return !graph.op_of(node).has_body() &&
         host_function(graph.context(), graph.op_of(node).name) != nullptr;
}

Result<RunCall> host_call(const Graph& graph, NodeId node) {
  if (!has_host_function(graph, node)) return RunCall();
  PW_TRY(check_types(graph, node));
  for (const OperandWrite& write : writes_of(graph, node))
    if (!write.contents.valid())
      return fail(error_in(
          place_of(graph, node), "PW1213",
          fmt::format(
              "op {} cannot be called: it writes `{}`, but no result returns the new contents",
              graph.op_of(node).name, graph.value_name(write.written)),
          "declare a result of the op `from` that operand"));
  if (const Attribute* shared = graph.attribute(node, kShared)) {
    const auto* which = std::get_if<std::string>(shared);
    return fail(error_in(
        place_of(graph, node), "PW1213",
        fmt::format(
            "op {} cannot be called: {}, but a function receives a separate tensor for each",
            graph.op_of(node).name, which ? *which : "operands overlap"),
        "call it with tensors that do not overlap"));
  }
  auto skeleton = PW_TRY(skeleton_of(graph, node));
  Callee callee{
      graph.op_of(node).name, std::move(skeleton), contents_of_results(graph, node), {}, {}};
  for (std::size_t r = 0; r < callee.contents.size(); ++r) {
    callee.typed.push_back(graph.type(graph.result(node, r)) != Types::unknown());
    if (callee.contents[r]) callee.writes.push_back(*callee.contents[r]);
  }
  std::sort(callee.writes.begin(), callee.writes.end());
  // Looked up at each call, because an executable may outlive the function it was compiled with.
  return RunCall([callee = std::move(callee)](Call& call) -> Status {
    const HostFunction* function = host_function(call.graph.context(), callee.op);
    if (function == nullptr)
      return fail_call(call, "PW1201", "its host function was removed", "register it again");
    return Frame(callee, call).run(*function);
  });
}

}  // namespace pw
