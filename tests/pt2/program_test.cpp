// Serialized programs: their calls, arguments, results, symbols and writes in the graph, and the
// location of a mistake.
#include "graph/infer/symbol_fact.hpp"
#include "graph/verify.hpp"
#include "import/pt2/pt2.hpp"
#include "import/pt2/sympy.hpp"
#include "tests/graph/library.hpp"
#include "tests/pt2/archives.hpp"

using namespace pw;
using namespace pw::test;

namespace {

FxOptions options() {
  FxOptions out;
  out.file = "m.pt2";
  return out;
}

FxImport imported(const ContextPtr& context, const ProgramText& program) {
  auto done = pt2::import_program(context, program.json(), "model.json", options());
  if (!done) FAIL(messages(done.error(), *context));
  CHECK(messages(verify(done->graph), *context) == "");
  return std::move(*done);
}

/// "PW0531 m.pt2/model.json at /schema_version: …".
std::string refused_program(const std::string& json) {
  const ContextPtr context = library();
  const auto done = pt2::import_program(context, json, "model.json", options());
  REQUIRE(!done);
  const Diagnostic& first = done.error()[0];
  return first.code + " " + first.place + ": " + first.message;
}
std::string refused_program(const ProgramText& program) { return refused_program(program.json()); }

/// One call of an op that is not known, with these arguments.
ProgramText call_of(const std::string& arguments) {
  ProgramText out = small_program();
  out.nodes += "," + node("torch.ops.mine.f.default", arguments, tensor("f"), "f");
  out.tensors += ",\"f\":" + meta(7, ints({3}));
  out.outputs += "," + tensor("f");
  out.output_specs += R"(,{"user_output":{"arg":{"as_tensor":{"name":"f"}}}})";
  return out;
}

/// The line of that call.
std::string call_line(const std::string& arguments) {
  const ContextPtr context = library();
  const FxImport done = imported(context, call_of(arguments));
  for (const NodeId n : done.graph.order())
    if (done.graph.op_of(n).name == "mine.f") return describe(done.graph, n);
  for (const NodeId n : done.graph.order())
    if (done.graph.op_of(n).name == "mine.f.default") return describe(done.graph, n);
  return "there is no such call";
}

/// The attributes of the call: "arg1 = …".
std::string attributes_of(const std::string& argument_json) {
  const std::string line = call_line(argument(tensor("x")) + "," + argument(argument_json));
  const std::size_t begin = line.find('{');
  return begin == std::string::npos ? line : line.substr(begin);
}

/// Returns an empty text if the text contains the part; otherwise the text, for the message.
std::string missing(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos ? "" : text + " lacks " + part;
}

}  // namespace

TEST_CASE("pt2: a program is its calls, with kinds, symbols, sources and writes", "[pt2]") {
  const ContextPtr context = library();
  const FxImport done = imported(context, small_program());
  const Graph& graph = done.graph;
  CHECK(kinds(graph) == "p_w:weight b_n:buffer x:input");
  CHECK(line_of(graph, "mm") == "mm: f32[s0, 3] = mm(x, p_w)");
  CHECK(line_of(graph, "relu") == "relu: f32[s0, 3] = relu(mm)");
  CHECK(line_of(graph, "y") == "y: f32[s0, 3] = add(relu, b_n)");
  CHECK(graph.source(graph.producer(graph.find_value("mm"))) == "m.py:7");
  const SymbolFact* s0 = graph.facts.find("s0");
  REQUIRE(s0 != nullptr);
  CHECK(s0->min == 2);
  CHECK(s0->max == 64);
  CHECK(graph.returned_count() == 1);
  CHECK(graph.value_name(graph.outputs()[0]) == "y");
  REQUIRE(graph.written_inputs().size() == 1);
  CHECK(graph.value_name(graph.written_inputs()[0]) == "b_n");
  CHECK(line_of(graph, "next") == "next: f32[3] = add(b_n, c__0)");
}

TEST_CASE("pt2: the module stack of a call is its group", "[pt2]") {
  ProgramText program = small_program();
  const std::string metadata = "\"metadata\":{";
  const std::size_t relu = program.nodes.find(metadata, program.nodes.find("relu.default"));
  program.nodes.insert(relu + metadata.size(),
                       R"("nn_module_stack":"L__self__,,M;L__self__blocks.0@1,blocks.0,m.Block;)"
                       R"(L__self__blocks.0.act@1,blocks.0.act,torch.nn.ReLU",)");
  const ContextPtr context = library();
  const FxImport done = imported(context, program);
  CHECK(done.graph.group(done.graph.producer(done.graph.find_value("relu"))) == "blocks.0@1.act");
  CHECK(done.graph.group(done.graph.producer(done.graph.find_value("mm"))).empty());
}

TEST_CASE("pt2: a symbol without an upper bound gets the usual one", "[pt2]") {
  ProgramText program = small_program();
  program.ranges = R"("s0":{"min_val":0,"max_val":null})";
  const ContextPtr context = library();
  const FxImport done = imported(context, program);
  CHECK(done.graph.facts.find("s0")->min == 0);
  CHECK(done.graph.facts.find("s0")->max == options().symbol_max);
}

TEST_CASE("pt2: a guard of one symbol narrows its range, and makes sizes one", "[pt2]") {
  const auto with_guard = [](const std::string& guard) {
    std::string json = small_program().json();
    json.insert(json.rfind('}'), R"(,"guards_code":[")" + guard + R"("])");
    const ContextPtr context = library();
    auto done = pt2::import_program(context, json, "model.json", options());
    REQUIRE(done);
    const SymbolFact* s0 = done->graph.facts.find("s0");
    return s0 ? print_range(*s0) : std::string("a number");
  };
  // s0 is in 2..64.
  CHECK(with_guard(
            "L['x'].size()[0] == (8 + ((-1)*torch.sym_max(0, 8 + ((-1)*L['x'].size()[0]))))") ==
        "2..8");
  CHECK(with_guard("2*(L['x'].size()[0] // 2) == L['x'].size()[0]") == "2..64 by 2");
  CHECK(with_guard("L['x'].size()[0] // 16 == 1") == "16..31");
  // Neither a range nor an equality nor about an input: it is not used.
  CHECK(with_guard("(L['x'].size()[0] % 4)*(L['x'].size()[0] % 6) == 0") == "2..64");
  CHECK(with_guard("L['x'].size()[0] != 3") == "2..64");
  CHECK(with_guard("L['x'].size()[0] == 4 or L['x'].size()[0] == 5") == "2..64");
  CHECK(with_guard("L['none'].size()[0] == 4") == "2..64");
}

TEST_CASE("pt2: conditions on sizes are checked by runs, and others are reported", "[pt2]") {
  using Lines = std::vector<std::string>;
  const auto conditions = [](const FxImport& done, bool checked) {
    Lines out = checked ? Lines() : done.report.unchecked;
    Context& context = done.graph.context();
    if (!checked) return out;
    for (const SizeCondition& condition : done.report.checked) {
      std::string values;  // values of s0 that satisfy it
      for (std::int64_t s0 = 2; s0 <= 8; ++s0) {
        const auto at = [&](DimId side) {
          return context.dims.constant(context.dims.evaluate(side, {{"s0", s0}}).value());
        };
        if (context.dims.prove(condition.op, at(condition.left), at(condition.right), {}) ==
            Truth::yes)
          values += std::to_string(s0);
      }
      out.push_back(condition.text + ": " + values);
    }
    return out;
  };
  const auto with_guard = [&](const std::string& guard, bool checked) {
    std::string json = small_program().json();
    json.insert(json.rfind('}'), R"(,"guards_code":[")" + guard + R"("])");
    const auto done = pt2::import_program(library(), json, "model.json", options());
    REQUIRE(done);
    return conditions(*done, checked);
  };
  // s0 is in 2..64.
  for (const bool checked : {false, true}) {
    CHECK(with_guard("L['x'].size()[0] <= 64", checked).empty());
    CHECK(with_guard("2*(L['x'].size()[0] // 2) == L['x'].size()[0]", checked).empty());
  }
  const std::string third = "(L['x'].size()[0] % 3) != 0";
  CHECK(with_guard(third, true) == Lines{third + ": 24578"});
  CHECK(with_guard(third, false).empty());
  const std::string two = "(L['x'].size()[0] % 4)*(L['x'].size()[0] % 6) == 0";  // not a range
  CHECK(with_guard(two, true) == Lines{two + ": 468"});
  for (const std::string other : {"L['x'].size()[0] == 4 or L['x'].size()[0] == 5",
                                  "(L['x'].size()[0] / 4) < 5", "L['n'] < L['x'].size()[0]"}) {
    CHECK(with_guard(other, true).empty());
    CHECK(with_guard(other, false) == Lines{"a guard, " + other});
  }

  const auto with_call = [&](const std::string& target, const std::string& arguments,
                             bool checked) {
    ProgramText program = small_program();
    program.nodes += "," + node("torch.ops.aten.sym_size.int",
                                argument(tensor("x")) + "," + argument(R"({"as_int":0})"),
                                R"({"as_sym_int":{"as_name":"n"}})", "n");
    program.numbers += fmt::format("{}\"n\":{}", program.numbers.empty() ? "" : ",", kS0);
    program.nodes += "," + node("_operator.ge",
                                argument(R"({"as_sym_int":{"as_name":"n"}})") + "," +
                                    argument(R"({"as_sym_int":{"as_int":5}})"),
                                R"({"as_sym_bool":{"as_name":"ge"}})", "ge");
    program.nodes += "," + node("torch.sym_not", argument(R"({"as_sym_bool":{"as_name":"ge"}})"),
                                R"({"as_sym_bool":{"as_name":"lt"}})", "lt");
    program.nodes += "," + node(target, arguments, "", "check");
    const ContextPtr context = library();
    return conditions(imported(context, program), checked);
  };
  const std::string message = argument(R"({"as_string":"no rate"})");
  CHECK(with_call("torch.ops.aten._assert_async.msg", argument(tensor("x")) + "," + message,
                  false) == Lines{"torch.ops.aten._assert_async.msg (no rate) at m.py:7"});
  const std::string scalar = "torch.ops.aten._assert_scalar.default";
  const auto of = [&](const std::string& name) {
    return argument(R"({"as_sym_bool":{"as_name":")" + name + R"("}})") + "," + message;
  };
  CHECK(with_call(scalar, of("ge"), false).empty());
  CHECK(with_call(scalar, of("ge"), true) == Lines{scalar + " (no rate) at m.py:7: 5678"});
  CHECK(with_call(scalar, of("lt"), true) == Lines{scalar + " (no rate) at m.py:7: 234"});
  const std::string range = "torch.ops.aten.sym_constrain_range_for_size.default";
  const std::string number = argument(R"({"as_sym_int":{"as_name":"n"}})");
  CHECK(with_call(range, number + "," + argument(R"({"as_int":0})", "min"), true).empty());
  CHECK(with_call(range, number + "," + argument(R"({"as_int":4})", "max"), true) ==
        Lines{range + " at m.py:7: 234"});
  const std::string metadata = "torch.ops.aten._assert_tensor_metadata.default";
  const auto dtype = [&](int number_of_type) {
    return argument(tensor("x")) + "," +
           argument(fmt::format(R"({{"as_scalar_type":{}}})", number_of_type), "dtype");
  };
  CHECK(with_call(metadata, dtype(7), false).empty());
  CHECK(with_call(metadata, dtype(8), false) == Lines{metadata + " at m.py:7"});
}

TEST_CASE("pt2: a symbol of one value is that number", "[pt2]") {
  ProgramText program = small_program();
  program.ranges = R"("s0":{"min_val":6,"max_val":6})";
  const ContextPtr context = library();
  const FxImport done = imported(context, program);
  CHECK(done.graph.facts.symbols.empty());
  CHECK(line_of(done.graph, "mm") == "mm: f32[6, 3] = mm(x, p_w)");
}

TEST_CASE("pt2: what the caller states about an input overrides the archive", "[pt2]") {
  const ContextPtr context = library();
  FxOptions given = options();
  given.kinds["b_n"] = InputKind::weight;
  const auto done = pt2::import_program(context, small_program().json(), "model.json", given);
  REQUIRE(done);
  CHECK(kinds(done->graph) == "p_w:weight b_n:weight x:input");
}

TEST_CASE("pt2: inputs that are not tensors", "[pt2]") {
  ProgramText program = small_program();
  program.inputs += R"(,{"as_sym_int":{"as_name":"k"}},{"as_int":3},{"as_none":true})";
  program.input_specs += R"(,{"user_input":{"arg":{"as_sym_int":{"as_name":"k"}}}},)"
                         R"({"constant_input":{"name":"d","value":{"as_int":3}}},)"
                         R"({"constant_input":{"name":"e","value":{"as_none":true}}})";
  program.numbers = fmt::format("\"k\":{}", kS0);
  program.nodes += "," + node("torch.ops.aten.view.default",
                              argument(tensor("y")) + "," +
                                  argument(R"({"as_sym_ints":[{"as_int":3},{"as_name":"k"}]})"),
                              tensor("v"), "v");
  program.tensors += fmt::format(",\"v\":{}", meta(7, fmt::format("[{{\"as_int\":3}},{}]", kS0)));
  program.outputs += "," + tensor("v");
  program.output_specs += R"(,{"user_output":{"arg":{"as_tensor":{"name":"v"}}}})";
  const ContextPtr context = library();
  const FxImport done = imported(context, program);
  CHECK(kinds(done.graph) == "p_w:weight b_n:buffer x:input");
  CHECK(line_of(done.graph, "v") == "v: f32[3, s0] = reshape(y){shape = [3, s0]}");
}

TEST_CASE("pt2: every form of argument stands in the call", "[pt2]") {
  CHECK(missing(attributes_of(R"({"as_int":-3})"), "arg1 = -3") == "");
  CHECK(missing(attributes_of(R"({"as_ints":[1,2]})"), "arg1 = [1, 2]") == "");
  CHECK(missing(attributes_of(R"({"as_float":0.5})"), "arg1 = 0.5") == "");
  CHECK(missing(attributes_of(R"({"as_float":"-Infinity"})"), "arg1 = -inf") == "");
  CHECK(missing(attributes_of(R"({"as_float":"NaN"})"), "arg1 = nan") == "");
  CHECK(missing(attributes_of(R"({"as_floats":[0.5,2]})"), "arg1 = [0.5, 2.0]") == "");
  CHECK(missing(attributes_of(R"({"as_bool":true})"), "arg1 = true") == "");
  CHECK(missing(attributes_of(R"({"as_string":"a\"b"})"), R"(arg1 = "a\"b")") == "");
  CHECK(missing(attributes_of(R"({"as_scalar_type":13})"), "arg1 = bf16") == "");
  CHECK(missing(attributes_of(R"({"as_sym_ints":[{"as_int":2},{"as_int":4}]})"), "arg1 = [2, 4]") ==
        "");
  CHECK(missing(attributes_of(R"({"as_complex":{"real":1,"imag":-2}})"), "complex(1, -2)") == "");
  CHECK(missing(attributes_of(R"({"as_none":true})"), R"(call = "%0, None")") == "");
  CHECK(missing(attributes_of(R"({"as_device":{"type":"cpu","index":null}})"), "device") == "");
  CHECK(missing(attributes_of(R"({"as_layout":7})"), "torch.strided") == "");
  CHECK(missing(attributes_of(R"({"as_memory_format":2})"), "torch.channels_last") == "");
  CHECK(missing(attributes_of(R"({"as_custom_obj":{"name":"o","class_fqn":"my.Class"}})"),
                "my.Class") == "");
  CHECK(missing(attributes_of(R"({"as_operator":"torch.ops.aten.add.Tensor"})"),
                "torch.ops.aten.add.Tensor") == "");
  CHECK(missing(call_line(argument(R"({"as_tensors":[{"name":"x"},{"name":"relu"}]})")),
                R"((x, relu){call = "[%0, %1]", writes)") == "");
  CHECK(missing(call_line(argument(R"({"as_nested_tensors":[[{"name":"x"}],[{"name":"relu"}]]})")),
                R"((x, relu){call = "[[%0], [%1]]", writes)") == "");
  CHECK(missing(call_line(argument(
                    R"({"as_optional_tensors":[{"as_none":true},{"as_tensor":{"name":"relu"}}]})")),
                R"((relu){call = "[None, %0]", writes)") == "");
  CHECK(missing(call_line(argument(tensor("x")) + "," + argument(tensor("relu"), "mask")),
                R"((x, relu){call = "%0, mask = %1", writes)") == "");
  CHECK(missing(
            call_line(argument(tensor("x")) + "," +
                      argument(R"({"as_string_to_argument":{"k":{"as_tensor":{"name":"relu"}}}})")),
            "(x, relu)") == "");
}

TEST_CASE("pt2: several results, lists of results, and absent results", "[pt2]") {
  ProgramText program = small_program();
  program.nodes +=
      "," +
      node("torch.ops.aten.split.Tensor",
           argument(tensor("x")) + "," + argument(R"({"as_int":2})") + "," +
               argument(R"({"as_int":1})"),
           R"({"as_tensors":[{"name":"left"},{"name":"right"}]})", "split") +
      "," +
      node("torch.ops.mine.g.default", argument(tensor("relu")),
           tensor("a") + R"(,{"as_none":true},{"as_tensors":[{"name":"b"},{"name":"c"}]})", "g");
  for (const char* name : {"left", "right", "a", "b", "c"})
    program.tensors +=
        fmt::format(",\"{}\":{}", name, meta(7, fmt::format("[{},{{\"as_int\":2}}]", kS0)));
  for (const char* name : {"right", "a"}) {
    program.outputs += "," + tensor(name);
    program.output_specs += fmt::format(R"(,{{"user_output":{{"arg":{}}}}})", tensor(name));
  }
  const ContextPtr context = library();
  const FxImport done = imported(context, program);
  CHECK(line_of(done.graph, "right") ==
        "left: f32[s0, 2], right: f32[s0, 2] = split(x){dim = 1, sizes = [2, 2]}");
  CHECK(line_of(done.graph, "a").starts_with("a: f32[s0, 2]"));
}

TEST_CASE("pt2: a subgraph that is only run is inlined; another stays an unknown call's", "[pt2]") {
  const std::string inner = fmt::format(
      R"({{"inputs":[{}],"outputs":[{}],"nodes":[{}],"tensor_values":{{"x":{},"d":{}}},)"
      R"("sym_int_values":{{}}}})",
      tensor("x"), tensor("d"),
      node("torch.ops.aten.neg.default", argument(tensor("x")), tensor("d"), "d"),
      meta(7, fmt::format("[{},{{\"as_int\":4}}]", kS0)),
      meta(7, fmt::format("[{},{{\"as_int\":4}}]", kS0)));
  const std::string graph =
      fmt::format(R"({{"as_graph":{{"name":"submod_1","graph":{}}}}})", inner);
  ProgramText program = small_program();
  program.nodes += "," + node("torch.ops.higher_order.wrap_with_set_grad_enabled",
                              argument(R"({"as_bool":false})") + "," + argument(graph) + "," +
                                  argument(tensor("x")),
                              tensor("got"), "wrap", R"(,"is_hop_single_tensor_return":false)");
  program.nodes +=
      "," + node("torch.ops.higher_order.map_impl", argument(graph) + "," + argument(tensor("x")),
                 tensor("mapped"), "map", R"(,"is_hop_single_tensor_return":true)");
  for (const char* name : {"got", "mapped"}) {
    program.tensors +=
        fmt::format(",\"{}\":{}", name, meta(7, fmt::format("[{},{{\"as_int\":4}}]", kS0)));
    program.outputs += "," + tensor(name);
    program.output_specs += fmt::format(R"(,{{"user_output":{{"arg":{}}}}})", tensor(name));
  }
  const ContextPtr context = library();
  const FxImport done = imported(context, program);
  std::string all;
  for (const std::string& line : describe(done.graph)) all += line + "\n";
  CHECK(missing(all, "= neg(x)") == "");
  CHECK(missing(all, "higher_order.map_impl(x)") == "");
  CHECK(missing(all, "submod_1") == "");
  CHECK(done.report.opaque.size() == 1);
}

TEST_CASE("pt2: subgraphs of one name stay apart, and their inputs are values", "[pt2]") {
  const std::string rows = meta(7, fmt::format("[{},{{\"as_int\":4}}]", kS0));
  const auto wrap = [&](const std::string& op, const std::string& inputs, const std::string& out) {
    const std::string inner = fmt::format(
        R"({{"inputs":[{}],"outputs":[{}],"nodes":[{}],"tensor_values":{{"x":{},"d":{}}},)"
        R"("sym_int_values":{{}}}})",
        inputs, tensor("d"), node(op, argument(tensor("x")), tensor("d"), "d"), rows, rows);
    const std::string graph = fmt::format(R"({{"as_graph":{{"name":"sub","graph":{}}}}})", inner);
    return "," + node("torch.ops.higher_order.wrap_with_set_grad_enabled",
                      argument(R"({"as_bool":false})") + "," + argument(graph) + "," +
                          argument(tensor("x")),
                      tensor(out), "wrap_" + out);
  };
  ProgramText program = small_program();
  program.nodes += wrap("torch.ops.aten.neg.default", tensor("x"), "a") +
                   wrap("torch.ops.aten.exp.default", tensor("x"), "b");
  program.tensors += fmt::format(",\"a\":{},\"b\":{}", rows, rows);
  program.outputs += "," + tensor("a") + "," + tensor("b");
  for (const char* name : {"a", "b"})
    program.output_specs += fmt::format(R"(,{{"user_output":{{"arg":{}}}}})", tensor(name));
  const ContextPtr context = library();
  std::string all;
  for (const std::string& line : describe(imported(context, program).graph)) all += line + "\n";
  CHECK(missing(all, "= neg(x)") == "");
  CHECK(missing(all, "= exp(x)") == "");
  program.nodes += wrap("torch.ops.aten.neg.default", R"({"as_int":1})", "c");
  CHECK(refused_program(program) ==
        "PW0532 m.pt2/model.json at "
        "/graph_module/graph/nodes/6/inputs/1/arg/as_graph/graph/inputs/0: a subgraph input that "
        "is not a value is not supported");
}

TEST_CASE("pt2: a user's input that is written holds the new contents", "[pt2]") {
  ProgramText program = small_program();
  program.output_specs =
      R"({"user_input_mutation":{"arg":{"name":"next"},"user_input_name":"b_n"}},)"
      R"({"user_output":{"arg":{"as_tensor":{"name":"y"}}}})";
  const ContextPtr context = library();
  const FxImport done = imported(context, program);
  REQUIRE(done.graph.written_inputs().size() == 1);
  CHECK(done.graph.returned_count() == 1);
}

TEST_CASE("pt2: outputs that are not tensors are left out and reported", "[pt2]") {
  ProgramText program = small_program();
  program.outputs += R"(,{"as_none":true},{"as_int":3})";
  program.output_specs += R"(,{"user_output":{"arg":{"as_none":true}}})"
                          R"(,{"user_output":{"arg":{"as_int":3}}})";
  const ContextPtr context = library();
  const FxImport done = imported(context, program);
  CHECK(done.graph.returned_count() == 1);
  CHECK(done.report.notes.back() == "output 3 is dropped: it is not a tensor (as_int)");
}

TEST_CASE("pt2: a mistake is reported with its JSON pointer", "[pt2]") {
  ProgramText program = small_program();
  CHECK(refused_program("{") == "PW0531 m.pt2/model.json: invalid JSON at byte 2");
  CHECK(refused_program("[]") == "PW0531 m.pt2/model.json at /: expected an object, found a list");
  CHECK(refused_program(std::string(200, '[')) ==
        "PW0531 m.pt2/model.json: it is nested deeper than 100 levels");
  CHECK(refused_program(R"({"a":1,"a":2})") ==
        "PW0531 m.pt2/model.json: duplicate member `a` in an object");
  CHECK(refused_program(R"({"a":18446744073709551615})") ==
        "PW0531 m.pt2/model.json: the number 18446744073709551615 does not fit in 64 bits");
  program.major = 7;
  CHECK(refused_program(program) ==
        "PW0532 m.pt2/model.json at /schema_version/major: the archive has schema version 7, "
        "but only 8 is supported");
  program = small_program();
  program.input_specs = "";
  CHECK(refused_program(program) ==
        "PW0531 m.pt2/model.json at /graph_module/signature/input_specs: the graph has 3 inputs, "
        "but its signature has 0");
  program = small_program();
  program.output_specs = R"({"buffer_mutation":{"arg":{"name":"next"},"buffer_name":"none"}},)"
                         R"({"user_output":{"arg":{"as_tensor":{"name":"y"}}}})";
  CHECK(refused_program(program) ==
        "PW0531 m.pt2/model.json at "
        "/graph_module/signature/output_specs/0/buffer_mutation/buffer_name: the signature "
        "has no input of this name");
  program = small_program();
  program.ranges = R"("s0":{"min_val":9,"max_val":3})";
  CHECK(refused_program(program) ==
        "PW0531 m.pt2/model.json at /range_constraints/s0: the minimum exceeds "
        "the maximum");
}

TEST_CASE("pt2: a mistake in a call is reported with the call's place", "[pt2]") {
  const std::string at = "m.pt2/model.json at /graph_module/graph/nodes/4";
  CHECK(refused_program(call_of(argument(tensor("no_such")))) ==
        "PW0509 " + at + ": unknown name `no_such`");
  CHECK(refused_program(call_of(argument(tensor("torch")))) ==
        "PW0531 " + at + "/inputs/0/arg/as_tensor/name: `torch` cannot name a value");
  CHECK(refused_program(call_of(argument(tensor("a b")))) ==
        "PW0531 " + at + "/inputs/0/arg/as_tensor/name: `a b` cannot name a value");
  CHECK(refused_program(call_of(argument(R"({"as_new":1})"))) ==
        "PW0532 " + at + "/inputs/0/arg: unknown kind of argument `as_new`");
  CHECK(refused_program(call_of(argument(R"({"as_scalar_type":99})"))) ==
        "PW0532 " + at +
            "/inputs/0/arg/as_scalar_type: invalid number: PyTorch defines no such value");
  CHECK(refused_program(call_of(argument(R"({"as_int":1,"as_none":true})"))) ==
        "PW0531 " + at + "/inputs/0/arg: expected one member, found 2");
  CHECK(refused_program(call_of(argument(tensor("x"), "k") + "," + argument(tensor("x")))) ==
        "PW0531 " + at +
            "/inputs/1/kind: arguments must be positional (1), followed by keyword arguments (2)");
  CHECK(refused_program(call_of(R"({"name":"","arg":)" + tensor("x") + R"(,"kind":2})")) ==
        "PW0531 " + at + "/inputs/0/name: a keyword argument needs a name");
  ProgramText program = call_of(argument(tensor("x")));
  program.nodes += "," + node("import os; f", "", "", "g");
  CHECK(refused_program(program) ==
        "PW0531 m.pt2/model.json at /graph_module/graph/nodes/5/target: `import os; f` is not a "
        "function path");
}

TEST_CASE("pt2: a call without an argument that its op needs is not known", "[pt2]") {
  for (const char* op :
       {"unsqueeze.default", "select.int", "permute.default", "expand.default", "split.Tensor",
        "squeeze.dim", "full_like.default", "flatten.using_ints"}) {
    ProgramText program = small_program();
    program.nodes +=
        "," + node(fmt::format("torch.ops.aten.{}", op), argument(tensor("x")), tensor("f"), "f");
    program.tensors += ",\"f\":" + meta(7, ints({3}));
    program.outputs += "," + tensor("f");
    program.output_specs += R"(,{"user_output":{"arg":{"as_tensor":{"name":"f"}}}})";
    const auto done = pt2::import_program(library(), program.json(), "model.json", options());
    CHECK((!done || done->graph.node_count() > 0));
  }
}

TEST_CASE("pt2: types that graphs do not have are refused", "[pt2]") {
  ProgramText program = small_program();
  program.tensors += ",\"f\":" + meta(7, ints({3}), "[]", 0, 1);
  program.nodes += "," + node("torch.ops.mine.f.default", argument(tensor("x")), tensor("f"), "f");
  const std::string values = "m.pt2/model.json at /graph_module/graph/tensor_values";
  CHECK(refused_program(program) ==
        "PW0532 " + values +
            "/f/layout: this tensor is not strided; other layouts are not supported");
  program = small_program();
  program.nodes += "," + node("torch.ops.mine.f.default", argument(tensor("x")), tensor("f"), "f");
  CHECK(refused_program(program) == "PW0531 " + values + ": the member `f` is missing");
  program.tensors +=
      ",\"f\":" + meta(7, R"json([{"as_expr":{"expr_str":"__import__('os')","hint":null}}])json");
  CHECK(refused_program(program) ==
        "PW0532 " + values +
            "/f/sizes/0/as_expr/expr_str: unsupported expression of symbols "
            "`__import__('os')`");
}

TEST_CASE("pt2: expressions of symbols", "[pt2]") {
  const auto read = [](std::string_view text) { return pt2::dim_of_sympy(text).value_or("-"); };
  CHECK(read("Integer(7)") == "7");
  CHECK(read("Integer(-7)") == "(-7)");
  CHECK(read("Symbol('s0', positive=True, integer=True)") == "s0");
  CHECK(read("Symbol('u0', integer=True)") == "u0");
  CHECK(read("Add(Symbol('s0'), Integer(-3))") == "(s0 + (-3))");
  CHECK(read("Pow(Symbol('s0'), Integer(2))") == "(s0 ** 2)");
  CHECK(read("Mul(Integer(-1), FloorDiv(Mul(Integer(-1), Symbol('s77')), Integer(4)))") ==
        "((-1) * FloorDiv(((-1) * s77), 4))");
  CHECK(read("Float('-1.0', precision=53)") == "(-1)");
  CHECK(read("CeilToInt(FloatTrueDiv(ToFloat(Symbol('s0')), Float('2.0', precision=53)))") ==
        "CeilToInt(FloatTrueDiv(ToFloat(s0), (2)))");
  for (const char* wrong :
       {"Float('1.5', precision=53)", "Float(1.0)", "Float('-', precision=53)", "", "s0",
        "Integer()", "Integer(x)", "Integer(1", "Symbol(s0)", "Symbol('a b')", "Symbol('s0', f())",
        "Add()", "Add(Integer(1),Integer(2))", "Integer(1) ", "Integer(1.5)"})
    CHECK(read(wrong) == "-");
  std::string deep = "Integer(1)";
  for (int i = 0; i < 40; ++i) deep = "Add(" + deep + ", Integer(1))";
  CHECK(read(deep) == "-");
}
