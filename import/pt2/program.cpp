#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "import/fx/module_path.hpp"
#include "import/pt2/arguments.hpp"
#include "import/pt2/dtypes.hpp"
#include "import/pt2/pt2.hpp"
#include "import/pt2/sympy.hpp"

namespace pw::pt2 {
namespace {

using fx::Expr;
using fx::Statement;

constexpr std::int64_t kSchema = 8;                    // major version
constexpr int kDeepestGraph = 16;                      // of subgraphs
constexpr std::int64_t kKeyword = 2, kPositional = 1;  // ArgumentKind
constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";

/// Returns true for arguments that refer to values of the graph.
bool names_value(std::string_view kind) {
  return kind == "as_tensor" || kind == "as_sym_int" || kind == "as_sym_float" ||
         kind == "as_sym_bool";
}

Result<std::optional<std::string>> name_in(const std::string& kind, const Part& value) {
  if (kind == "as_tensor") return PW_TRY(read_value_name(PW_TRY(value.member("name"))));
  if (!names_value(kind)) return std::nullopt;
  const auto [form, name] = PW_TRY(value.choice());
  if (form != "as_name") return std::nullopt;  // a plain number
  return PW_TRY(read_value_name(name));
}

/// Returns "torch.ops.aten.add.Tensor", "operator.mul".
Result<std::string> read_target(const Part& part) {
  std::string target = PW_TRY(part.text());
  const auto fits = [](unsigned char c) { return c == '.' || c == '_' || std::isalnum(c) != 0; };
  if (target.find('.') == std::string::npos || target.front() == '.' ||
      !std::ranges::all_of(target, fits))
    return part.wrong(fmt::format("`{}` is not a function path",
                                  printable(std::string_view(target).substr(0, 120))));
  return target.starts_with("_operator.") ? target.substr(1) : target;
}

/// Returns "model.py:12", from the last line of a stack trace that names a place.
std::string place_in(std::string_view trace) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  const std::size_t file = trace.rfind(kFile);
  if (file == std::string_view::npos) return "";
  trace.remove_prefix(file + kFile.size());
  const std::size_t line = trace.find(kLine);
  if (line == std::string_view::npos || trace.substr(0, line).find('\n') != std::string_view::npos)
    return "";
  const std::string_view number = trace.substr(line + kLine.size());
  return printable(fmt::format("{}:{}", trace.substr(0, line),
                               number.substr(0, number.find_first_not_of("0123456789"))));
}

Result<std::string> read_dim(const Part& size) {
  const auto [kind, value] = PW_TRY(size.choice());
  if (kind == "as_int") return std::to_string(PW_TRY(value.integer()));
  if (kind != "as_expr") return value.wrong("a dim must be as_int or as_expr", "", "PW0532");
  const Part expression = PW_TRY(value.member("expr_str"));
  const std::string text = PW_TRY(expression.text());
  if (const auto read = dim_of_sympy(text)) return *read;
  return expression.wrong(fmt::format("unsupported expression of symbols `{}`",
                                      printable(std::string_view(text).substr(0, 120))),
                          "", "PW0532");
}

Result<std::string> read_tensor_type(const Part& meta) {
  const Part layout = PW_TRY(meta.member("layout"));
  if (PW_TRY(layout.integer()) != kStrided)
    return layout.wrong("this tensor is not strided; other layouts are not supported", "",
                        "PW0532");
  const Part dtype = PW_TRY(meta.member("dtype"));
  const ScalarType* type = scalar_type(PW_TRY(dtype.integer()));
  if (type == nullptr)
    return dtype.wrong("invalid dtype number: PyTorch defines no such dtype", "", "PW0532");
  std::vector<std::string> dims;
  for (const Part& size : PW_TRY(PW_TRY(meta.member("sizes")).items()))
    dims.push_back(PW_TRY(read_dim(size)));
  return fmt::format("{}[{}]", type->abbreviation, fmt::join(dims, ", "));
}

/// Returns the type of a value of `graph`, as torch prints it; empty for numbers that are not
/// whole.
Result<std::string> read_type(const Part& graph, const std::string& kind, const std::string& name) {
  if (kind == "as_tensor")
    return read_tensor_type(PW_TRY(PW_TRY(graph.member("tensor_values")).member(name)));
  if (kind != "as_sym_int") return std::string();
  return fmt::format("Sym({})",
                     PW_TRY(read_dim(PW_TRY(PW_TRY(graph.member("sym_int_values")).member(name)))));
}

GraphTaker no_graph() {
  return [](const Part& graph) -> Result<std::string> {
    return graph.wrong("a graph cannot be returned");
  };
}

Expr name_expr(const std::string& name, const Span& span) {
  return make_expr(Expr::Kind::name, span, name);
}

Statement part_of(const std::string& tuple, std::size_t at, const std::string& name,
                  const Statement& call) {
  Statement out;
  out.span = out.type_span = call.span;
  out.source = call.source;
  out.group = call.group;
  out.targets.push_back(name_expr(name, call.span));
  out.value = make_expr(Expr::Kind::call, call.span, "operator.getitem");
  out.value.args.push_back(name_expr(tuple, call.span));
  Expr index = make_expr(Expr::Kind::integer, call.span);
  index.integer = static_cast<std::int64_t>(at);
  out.value.args.push_back(std::move(index));
  return out;
}

Statement unnamed(const std::string& tuple, std::size_t at, const Statement& call) {
  Statement out = part_of(tuple, at, "", call);
  out.targets.clear();
  return out;
}

/// Returns true if a higher-order op returns a tuple of one: the default unless stated otherwise.
bool is_tuple_of_one(const Part& node, const Statement& call) {
  if (!call.value.text.starts_with(kHigherOrder)) return false;
  const auto single = node.maybe("is_hop_single_tensor_return");
  return !single || !*single || !(*single)->boolean().value_or(false);
}

Result<std::string> tuple_name(const Part& node) {
  if (const auto name = PW_TRY(node.maybe("name"))) return PW_TRY(read_value_name(*name));
  return fmt::format("call{}", node.pointer().substr(node.pointer().rfind('/') + 1));
}

Statement returns(const Span& span) {
  Statement out;
  out.kind = Statement::Kind::return_;
  out.span = out.type_span = span;
  out.value = make_expr(Expr::Kind::tuple, span);
  return out;
}

Statement copy_into(const std::string& input, Expr value) {
  Statement out;
  out.kind = Statement::Kind::expression;
  out.span = out.type_span = value.span;
  out.value = make_expr(Expr::Kind::call, value.span, "torch.ops.aten.copy_.default");
  out.value.args.push_back(name_expr(input, value.span));
  out.value.args.push_back(std::move(value));
  return out;
}

/// Replaces `L['x'].size()[1]` by dims of inputs; nothing if one is not of an input, or for a
/// quotient that is not whole.
Result<std::optional<std::string>> size_text(const Part& graph,
                                             const std::map<std::string, InputKind>& kinds,
                                             std::string text) {
  constexpr std::string_view kOpen = "L['", kSize = "'].size()[", kSym = "torch.sym_";
  const Part types = PW_TRY(graph.member("tensor_values"));
  for (std::size_t at = 0; (at = text.find(kOpen, at)) != std::string::npos;) {
    const std::size_t middle = text.find(kSize, at);
    const std::size_t digits = middle + kSize.size(), end = text.find(']', digits);
    if (middle == std::string::npos || end == std::string::npos || end - digits > 2)
      return std::nullopt;
    const std::string name = text.substr(at + kOpen.size(), middle - at - kOpen.size());
    const auto input = kinds.find(name);
    if (input == kinds.end() || input->second != InputKind::input) return std::nullopt;
    const auto sizes = PW_TRY(PW_TRY(PW_TRY(types.member(name)).member("sizes")).items());
    const std::size_t axis = std::strtoul(text.c_str() + digits, nullptr, 10);
    if (axis >= sizes.size()) return std::nullopt;
    text.replace(at, end + 1 - at, PW_TRY(read_dim(sizes[axis])));
  }
  for (std::size_t at = 0; (at = text.find(kSym, at)) != std::string::npos;)
    text.erase(at, kSym.size());  // `max` and `min`
  for (std::size_t at = 0; (at = text.find('/', at)) != std::string::npos; at += 2)
    if (text.substr(at, 2) != "//") return std::nullopt;
  return text;
}

/// Splits a guard of one comparison; both sides are empty for another form.
FxGuard guard_of(const std::string& line) {
  constexpr std::size_t kLongest = 512;
  constexpr std::pair<std::string_view, Compare> kComparisons[] = {
      {" == ", Compare::eq}, {" != ", Compare::ne}, {" <= ", Compare::le},
      {" >= ", Compare::ge}, {" < ", Compare::lt},  {" > ", Compare::gt}};
  const FxGuard other{printable(line), Compare::eq, "", ""};
  if (line.size() >= kLongest || line.find(" or ") != std::string::npos ||
      line.find(" and ") != std::string::npos)
    return other;
  FxGuard out = other;
  for (const auto& [form, op] : kComparisons)
    for (std::size_t at = line.find(form); at != std::string::npos; at = line.find(form, at + 1)) {
      if (!out.left.empty()) return other;  // several comparisons
      out.op = op;
      out.left = line.substr(0, at);
      out.right = line.substr(at + form.size());
    }
  return out;
}

/// Reads guards, such as `L['x'].size()[1] == L['y'].size()[0]`.
Status read_guards(const Part& graph, const Part& guards, Program& program) {
  constexpr std::size_t kMost = 200;
  const std::vector<Part> lines = PW_TRY(guards.items());
  for (std::size_t i = 0; i < std::min(lines.size(), kMost); ++i) {
    FxGuard guard = guard_of(PW_TRY(lines[i].text()));
    const auto left = PW_TRY(size_text(graph, program.kinds, guard.left)),
               right = PW_TRY(size_text(graph, program.kinds, guard.right));
    guard.left = left && right ? *left : "";
    guard.right = left && right ? *right : "";
    program.guards.push_back(std::move(guard));
  }
  if (lines.size() > kMost)
    program.guards.push_back(
        {fmt::format("{} other guards", lines.size() - kMost), Compare::eq, "", ""});
  return {};
}

class ProgramReader {
 public:
  ProgramReader(SourceMap& sources, std::string place, std::int64_t most)
      : sources_(sources), place_(std::move(place)), most_(most), source_(sources.size()) {}

  Result<Program> read(std::string_view text) {
    const Json json = PW_TRY(read_document(text, place_));
    const Part top(json, place_);
    PW_TRY(check_version(top));
    const Part graph_module = PW_TRY(top.member("graph_module"));
    const Part signature = PW_TRY(graph_module.member("signature"));
    const Part graph = PW_TRY(graph_module.member("graph"));
    PW_TRY(read_inputs(graph, PW_TRY(signature.member("input_specs"))));
    PW_TRY(read_nodes(graph, out_.module, 0));
    PW_TRY(read_outputs(graph, PW_TRY(signature.member("output_specs"))));
    PW_TRY(read_ranges(PW_TRY(top.member("range_constraints"))));
    if (const auto guards = PW_TRY(top.maybe("guards_code")))
      PW_TRY(read_guards(graph, *guards, out_));
    out_.places = sources_.add(place_, std::move(pointers_));
    PW_ASSERT(out_.places == source_, "nothing else was read meanwhile");
    return std::move(out_);
  }

 private:
  Status check_version(const Part& top) {
    const Part version = PW_TRY(PW_TRY(top.member("schema_version")).member("major"));
    const std::int64_t major = PW_TRY(version.integer());
    if (major != kSchema)
      return version.wrong(
          fmt::format("the archive has schema version {}, but only {} is supported", major,
                      kSchema),
          "save it with PyTorch 2.8 or later", "PW0532");
    if (const auto torch = PW_TRY(top.maybe("torch_version")))
      out_.torch = printable(PW_TRY(torch->text()).substr(0, 40));
    return {};
  }

  /// Returns the place of a part, as a span of the list of pointers.
  Span span_of(const Part& part) {
    const auto begin = static_cast<std::uint32_t>(pointers_.size());
    pointers_ += part.pointer();
    const auto end = static_cast<std::uint32_t>(pointers_.size());
    pointers_ += '\n';
    return {source_, begin, end};
  }

  // ---- inputs
  Status parameter(const Part& graph, const Part& input, fx::Function& function) {
    const auto [kind, value] = PW_TRY(input.choice());
    const std::optional<std::string> name = PW_TRY(name_in(kind, value));
    if (!name) return {};
    const Span span = span_of(input);
    function.parameters.push_back({*name, span, PW_TRY(read_type(graph, kind, *name)), span});
    return {};
  }

  Status read_inputs(const Part& graph, const Part& specs) {
    const std::vector<Part> inputs = PW_TRY(PW_TRY(graph.member("inputs")).items());
    const std::vector<Part> kinds = PW_TRY(specs.items());
    if (inputs.size() != kinds.size())
      return specs.wrong(fmt::format("the graph has {} inputs, but its signature has {}",
                                     inputs.size(), kinds.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::size_t before = out_.module.forward.parameters.size();
      PW_TRY(parameter(graph, inputs[i], out_.module.forward));
      if (out_.module.forward.parameters.size() > before)
        PW_TRY(read_kind(kinds[i], out_.module.forward.parameters.back()));
    }
    return {};
  }

  Status read_kind(const Part& spec, const fx::Parameter& parameter) {
    const auto [kind, about] = PW_TRY(spec.choice());
    const std::string& input = parameter.name;
    if (parameter.type.starts_with("Sym(")) return {};
    if (kind == "user_input") {
      out_.kinds[input] = InputKind::input;
    } else if (kind == "parameter") {
      PW_TRY(stored(about, "parameter_name", input, InputKind::weight, false));
    } else if (kind == "buffer") {
      const bool kept = PW_TRY(PW_TRY(about.member("persistent")).boolean());
      PW_TRY(stored(about, "buffer_name", input, InputKind::buffer, !kept));
    } else if (kind == "tensor_constant") {
      PW_TRY(stored(about, "tensor_constant_name", input, InputKind::weight, true));
    } else {
      return about.wrong(fmt::format("an input of kind `{}` is not supported", printable(kind)), "",
                         "PW0532");
    }
    return {};
  }

  Status stored(const Part& about, std::string_view member, const std::string& input,
                InputKind kind, bool constant) {
    const std::string name = PW_TRY(PW_TRY(about.member(member)).text());
    out_.kinds[input] = kind;
    out_.tensors[input] = {name, constant};
    written_.emplace(std::pair(std::string(member), name), input);
    return {};
  }

  // ---- calls
  Status read_nodes(const Part& graph, fx::Module& module, int depth) {
    for (const Part& node : PW_TRY(PW_TRY(graph.member("nodes")).items()))
      PW_TRY(read_node(graph, node, module, depth));
    return {};
  }

  Status read_node(const Part& graph, const Part& node, fx::Module& module, int depth) {
    Statement call;
    call.kind = Statement::Kind::expression;
    call.span = call.type_span = span_of(node);
    call.value =
        make_expr(Expr::Kind::call, call.span, PW_TRY(read_target(PW_TRY(node.member("target")))));
    PW_TRY(read_arguments(node, module, depth, call.value));
    if (const auto metadata = PW_TRY(node.maybe("metadata"))) {
      if (const auto trace = PW_TRY(metadata->maybe("stack_trace")))
        call.source = place_in(PW_TRY(trace->text()));
      if (const auto stack = PW_TRY(metadata->maybe("nn_module_stack")))
        call.group = fx::group_of_archived_stack(PW_TRY(stack->text()));
    }
    return read_results(graph, node, std::move(call), module.forward);
  }

  Status read_arguments(const Part& node, fx::Module& module, int depth, Expr& call) {
    const GraphTaker take = [&](const Part& graph) { return submodule(graph, module, depth + 1); };
    for (const Part& input : PW_TRY(PW_TRY(node.member("inputs")).items())) {
      const Part kind = PW_TRY(input.member("kind"));
      const std::int64_t how = PW_TRY(kind.integer());
      if (how != kKeyword && (how != kPositional || !call.keywords.empty()))
        return kind.wrong("arguments must be positional (1), followed by keyword arguments (2)");
      if (how == kKeyword) {
        const Part name = PW_TRY(input.member("name"));
        call.keywords.push_back(PW_TRY(name.text()));
        if (call.keywords.back().empty()) return name.wrong("a keyword argument needs a name");
      }
      call.args.push_back(PW_TRY(read_argument(PW_TRY(input.member("arg")), call.span, take)));
    }
    return {};
  }

  /// Adds a subgraph passed to a higher-order op as a submodule.
  Result<std::string> submodule(const Part& argument, fx::Module& parent, int depth) {
    if (depth > kDeepestGraph)
      return argument.wrong(
          fmt::format("subgraphs are nested deeper than {} levels", kDeepestGraph));
    fx::Module child;
    child.name = PW_TRY(read_value_name(PW_TRY(argument.member("name"))));
    const Part graph = PW_TRY(argument.member("graph"));
    child.forward.span = span_of(graph);
    for (const Part& input : PW_TRY(PW_TRY(graph.member("inputs")).items())) {
      const std::size_t before = child.forward.parameters.size();
      PW_TRY(parameter(graph, input, child.forward));
      if (child.forward.parameters.size() == before)  // the call's arguments are given in order
        return input.wrong("a subgraph input that is not a value is not supported", "", "PW0532");
    }
    PW_TRY(read_nodes(graph, child, depth));
    const Part outputs = PW_TRY(graph.member("outputs"));
    Statement last = returns(span_of(outputs));
    for (const Part& output : PW_TRY(outputs.items()))
      last.value.args.push_back(PW_TRY(read_argument(output, last.span, no_graph())));
    const auto single = PW_TRY(graph.maybe("is_single_tensor_return"));
    if (single && PW_TRY(single->boolean()) && last.value.args.size() == 1)
      last.value = Expr(std::move(last.value.args.front()));
    child.forward.statements.push_back(std::move(last));
    const auto taken = [&](const fx::Module& other) { return other.name == child.name; };
    while (std::ranges::any_of(parent.children, taken)) child.name += '_';
    std::string name = child.name;
    parent.children.push_back(std::move(child));
    return name;
  }

  Status read_results(const Part& graph, const Part& node, Statement call, fx::Function& function) {
    const Part part = PW_TRY(node.member("outputs"));
    const std::vector<Part> outputs = PW_TRY(part.items());
    if (outputs.size() == 1 && !is_tuple_of_one(node, call)) {
      const auto [kind, value] = PW_TRY(outputs.front().choice());
      if (kind != "as_tensors") return read_result(graph, kind, value, std::move(call), function);
      return read_tuple(graph, node, PW_TRY(value.items()), false, std::move(call), function);
    }
    if (!outputs.empty()) return read_tuple(graph, node, outputs, true, std::move(call), function);
    function.statements.push_back(std::move(call));
    return {};
  }

  Status read_result(const Part& graph, const std::string& kind, const Part& value, Statement call,
                     fx::Function& function) {
    if (const std::optional<std::string> name = PW_TRY(name_in(kind, value))) {
      call.kind = Statement::Kind::assign;
      call.type = PW_TRY(read_type(graph, kind, *name));
      call.targets.push_back(name_expr(*name, call.span));
    }
    function.statements.push_back(std::move(call));
    return {};
  }

  /// Reads a tuple. `unions`: each item is a separate Argument; otherwise they are tensors.
  Status read_tuple(const Part& graph, const Part& node, const std::vector<Part>& results,
                    bool unions, Statement call, fx::Function& function) {
    const std::string tuple = PW_TRY(tuple_name(node));
    call.kind = Statement::Kind::assign;
    call.targets.push_back(name_expr(tuple, call.span));
    function.statements.push_back(call);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!unions) {
        const std::string name = PW_TRY(read_value_name(PW_TRY(results[i].member("name"))));
        PW_TRY(read_result(graph, "as_tensor", results[i], unnamed(tuple, i, call), function));
        continue;
      }
      const auto [kind, value] = PW_TRY(results[i].choice());
      if (kind == "as_none") continue;
      if (kind == "as_tensors") {
        const std::string list = fmt::format("{}_{}", tuple, i);
        function.statements.push_back(part_of(tuple, i, list, call));
        const std::vector<Part> tensors = PW_TRY(value.items());
        for (std::size_t k = 0; k < tensors.size(); ++k)
          PW_TRY(read_result(graph, "as_tensor", tensors[k], unnamed(list, k, call), function));
        continue;
      }
      if (!names_value(kind))
        return value.wrong(fmt::format("a result of kind `{}` is not supported", printable(kind)),
                           "", "PW0532");
      PW_TRY(read_result(graph, kind, value, unnamed(tuple, i, call), function));
    }
    return {};
  }

  // ---- outputs
  Status read_outputs(const Part& graph, const Part& specs) {
    const Part list = PW_TRY(graph.member("outputs"));
    const std::vector<Part> outputs = PW_TRY(list.items()), kinds = PW_TRY(specs.items());
    if (outputs.size() != kinds.size())
      return specs.wrong(fmt::format("the graph has {} outputs, but its signature has {}",
                                     outputs.size(), kinds.size()));
    fx::Function& function = out_.module.forward;
    function.span = span_of(list);
    Statement last = returns(function.span);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Expr value = PW_TRY(read_argument(outputs[i], span_of(outputs[i]), no_graph()));
      const std::string written = PW_TRY(written_input(kinds[i]));
      note_number(PW_TRY(outputs[i].choice()).first, i);
      if (written.empty())
        last.value.args.push_back(std::move(value));
      else if (value.text != written)
        function.statements.push_back(copy_into(written, std::move(value)));
    }
    function.statements.push_back(std::move(last));
    return {};
  }

  void note_number(const std::string& kind, std::size_t i) {
    if (kind == "as_tensor" || kind == "as_none") return;
    out_.notes.push_back(
        fmt::format("output {} is dropped: it is not a tensor ({})", i, printable(kind)));
  }

  /// Returns the input that receives an output's value at the end; empty if the output is returned.
  Result<std::string> written_input(const Part& spec) {
    const auto [kind, about] = PW_TRY(spec.choice());
    if (kind == "user_output" || kind == "loss_output" || kind.starts_with("gradient_to_"))
      return std::string();
    if (kind == "user_input_mutation")
      return PW_TRY(read_value_name(PW_TRY(about.member("user_input_name"))));
    if (kind != "buffer_mutation" && kind != "parameter_mutation")
      return about.wrong(fmt::format("an output of kind `{}` is not supported", printable(kind)),
                         "", "PW0532");
    const std::string member = kind == "buffer_mutation" ? "buffer_name" : "parameter_name";
    const Part name = PW_TRY(about.member(member));
    const auto input = written_.find({member, PW_TRY(name.text())});
    if (input == written_.end()) return name.wrong("the signature has no input of this name");
    return input->second;
  }

  Status read_ranges(const Part& ranges) {
    for (const auto& [symbol, range] : PW_TRY(ranges.members())) {
      const auto least = PW_TRY(range.maybe("min_val")), most = PW_TRY(range.maybe("max_val"));
      const std::int64_t min = least ? PW_TRY(least->integer()) : 0;
      const std::int64_t max = most ? PW_TRY(most->integer()) : std::max(min, most_);
      if (min > max) return range.wrong("the minimum exceeds the maximum");
      out_.ranges[symbol] = {std::max<std::int64_t>(min, 0), std::max<std::int64_t>(max, 0)};
    }
    return {};
  }

  SourceMap& sources_;
  std::string place_;
  std::int64_t most_;
  SourceId source_;
  std::string pointers_;
  Program out_;
  std::map<std::pair<std::string, std::string>, std::string> written_;  ///< inputs, by signature
};

}  // namespace

Result<Program> read_program(SourceMap& sources, std::string_view json, const std::string& place,
                             std::int64_t most) {
  return ProgramReader(sources, place, most).read(json);
}

}  // namespace pw::pt2
