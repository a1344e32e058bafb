// Opaque ops run by host functions: on every engine, in a plan and whole, in order.
#include "backends/host_functions.hpp"

#include <cstring>

#include "backends/cpu/cpu.hpp"
#include "backends/eager/eager.hpp"
#include "backends/host_arguments.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "cuda/device/host_driver.hpp"
#include "engines/run_given.hpp"
#include "exec/runner.hpp"
#include "tests/backends/graphs.hpp"

namespace {

using namespace pw;
using namespace pw::test;

std::vector<std::unique_ptr<Backend>> engines_with_functions() {
  std::vector<std::unique_ptr<Backend>> all;
  all.push_back(make_eager());
  all.push_back(make_interpreter());
  all.push_back(make_interpreter(Precision::single));
  all.push_back(std::make_unique<CpuBackend>(BackendOptions{}));
  return all;
}

float* floats(const TensorView& view) { return reinterpret_cast<float*>(view.data); }

/// Adds 1 to its argument, and returns twice the new contents.
Status grow(const HostCall& call) {
  for (std::int64_t i = 0; i < call.operands[0]->count(); ++i) {
    floats(*call.operands[0])[i] += 1;
    if (!call.results.empty()) floats(call.results[0])[i] = 2 * floats(*call.operands[0])[i];
  }
  return {};
}

GivenOutputs run(const Graph& graph, Backend& backend, const GivenInputs& inputs) {
  auto done = run_given(graph, backend, inputs);
  INFO((done ? std::string() : render(done.error(), graph.context().sources)));
  REQUIRE(done);
  return std::move(*done);
}

std::string text_of(const std::vector<HostArgument>& arguments) {
  std::string out;
  for (const HostArgument& a : arguments) {
    out += out.empty() ? "" : ", ";
    if (!a.keyword.empty()) out += a.keyword + "=";
    switch (a.kind) {
      case HostArgument::Kind::operand: out += "%" + std::to_string(a.operand); break;
      case HostArgument::Kind::list: out += "[" + text_of(a.items) + "]"; break;
      case HostArgument::Kind::tuple: out += "(" + text_of(a.items) + ")"; break;
      case HostArgument::Kind::call: out += a.word + "(" + text_of(a.items) + ")"; break;
      case HostArgument::Kind::value:
        if (!a.word.empty())
          out += "$" + a.word;
        else if (const auto* i = std::get_if<std::int64_t>(&a.value))
          out += std::to_string(*i);
        else if (const auto* s = std::get_if<std::string>(&a.value))
          out += "'" + *s + "'";
        else if (const auto* b = std::get_if<bool>(&a.value))
          out += *b ? "True" : "False";
        else
          out += std::holds_alternative<double>(a.value) ? "real" : "None";
        break;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("host functions: one writes its operand, and later readers see it", "[backends]") {
  const ContextPtr context = library();
  const Graph graph = graph_of(R"(
  op mine.grow(...) effect
  in x: f32[2]
  a = x * 3.0
  r: f32[2], a1: f32[2] = mine.grow(a){writes = [0]}
  y = a + a1
  out y, r)",
                               context);
  give_host_function(*context, "mine.grow", grow);
  for (const auto& engine : engines_with_functions()) {
    INFO(engine->name());
    const GivenOutputs out = run(graph, *engine, {{"x", tensor(DType::f32, {2}, {1, 2})}});
    CHECK(values(out.returned[0]) == std::vector<double>{3 + 4, 6 + 7});
    CHECK(values(out.returned[1]) == std::vector<double>{8, 14});
  }
}

TEST_CASE("host functions: what is returned reshaped is made where it belongs", "[backends]") {
  const ContextPtr context = library();
  const Graph graph = graph_of(R"(
  op mine.twice(...)
  in x: f32[6], z: f32[6]
  a: f32[6] = mine.twice(x)
  b: f32[6] = mine.twice(z)
  r = reshape(reshape(a){shape = [6, 1]}){shape = [2, 3]}
  s = reshape(b){shape = [3, 2]}
  out r, b, s)",
                               context);
  std::vector<const std::byte*> made;
  give_host_function(*context, "mine.twice", [&](const HostCall& call) -> Status {
    made.push_back(call.results[0].data);
    for (std::int64_t i = 0; i < 6; ++i)
      floats(call.results[0])[i] = 2 * floats(*call.operands[0])[i];
    return {};
  });
  for (const auto& engine : engines_with_functions()) {
    INFO(engine->name());
    made.clear();
    const Tensor x = tensor(DType::f32, {6}, {1, 2, 3, 4, 5, 6}),
                 z = tensor(DType::f32, {6}, {7, 8, 9, 10, 11, 12});
    const Tensor r(DType::f32, {2, 3}), b(DType::f32, {6}), s(DType::f32, {3, 2});
    const TensorView in[] = {x.view(), z.view()}, out[] = {r.view(), b.view(), s.view()};
    REQUIRE(engine->compile(graph).value()->run(in, out, {}));
    CHECK(values(r) == std::vector<double>{2, 4, 6, 8, 10, 12});
    CHECK(values(b) == std::vector<double>{14, 16, 18, 20, 22, 24});
    CHECK(values(s) == values(b));
    if (engine->name() == "eager" || engine->name() == "cpu")
      CHECK(made == std::vector<const std::byte*>{r.data(), b.data()});
    // An output that lies where inputs are still read from is written to at the end.
    const TensorView over[] = {{DType::f32, {2, 3}, z.data()}, b.view(), s.view()};
    REQUIRE(engine->compile(graph).value()->run(in, over, {}));
    CHECK(values(z) == values(r));
    CHECK(values(b) == std::vector<double>{14, 16, 18, 20, 22, 24});
  }
}

TEST_CASE("host functions: calls keep their order, also where rows are grouped around them",
          "[backends]") {
  const ContextPtr context = library();
  // u and w would be one kernel; what w reads is made by the second call.
  const Graph graph = graph_of(R"(
  op mine.log(...) effect
  in x: f32[n, 2]
  u = exp(x)
  a: f32[n, 2] = mine.log(x){step = 1}
  b: f32[n, 2] = mine.log(x){step = 2}
  w = neg(u * b)
  out a, w)",
                               context);
  std::vector<std::int64_t> steps;
  give_host_function(*context, "mine.log", [&](const HostCall& call) -> Status {
    steps.push_back(std::get<std::int64_t>(call.attributes[0].second));
    std::memcpy(call.results[0].data, call.operands[0]->data, call.results[0].bytes());
    return {};
  });
  for (const auto& engine : engines_with_functions()) {
    INFO(engine->name());
    steps.clear();
    run(graph, *engine, {{"x", tensor(DType::f32, {1, 2}, {0, 1})}});
    CHECK(steps == std::vector<std::int64_t>{1, 2});
  }
}

TEST_CASE("host functions: each written operand has a buffer of its own", "[backends]") {
  const ContextPtr context = library();
  // Two tensors that hold the same, and one tensor that stands twice.
  const Graph graph = graph_of(R"(
  op mine.two(...) effect
  op mine.twice(...) effect
  in x: f32[2]
  a: f32[2], b: f32[2] = mine.two(x, x){writes = [0, 1]}
  c: f32[2] = mine.twice(x, x){writes = [0], call = "%0, %0"}
  d: f32[2] = mine.twice(x, x){writes = [0]}
  out a, b, c, d)",
                               context);
  give_host_function(*context, "mine.two", grow);
  give_host_function(*context, "mine.twice", [](const HostCall& call) -> Status {
    floats(*call.operands[0])[0] = 7;
    const TensorView& second = *call.operands[call.arguments[1].operand];
    floats(*call.operands[0])[1] = floats(second)[0];
    return {};
  });
  for (const auto& engine : engines_with_functions()) {
    const GivenOutputs out = run(graph, *engine, {{"x", tensor(DType::f32, {2}, {1, 2})}});
    CHECK(values(out.returned[0]) == std::vector<double>{2, 3});
    CHECK(values(out.returned[1]) == std::vector<double>{1, 2});
    CHECK(values(out.returned[2]) == std::vector<double>{7, 7});
    CHECK(values(out.returned[3]) == std::vector<double>{7, 1});
  }
}

TEST_CASE("host functions: operands that share memory are refused", "[backends]") {
  const ContextPtr context = library();
  const Graph graph = graph_of(R"(
  op mine.f(...) effect
  in x: f32[2]
  y: f32[2] = mine.f(x){shared = "operands 0 and 1 share memory"}
  out y)",
                               context);
  give_host_function(*context, "mine.f", grow);
  const auto failed = make_eager()->compile(graph);
  REQUIRE_FALSE(failed);
  CHECK(failed.error()[0].code == "PW1213");
  CHECK(failed.error()[0].message.find("share memory") != std::string::npos);
}

TEST_CASE("host functions: an op that does not say what it writes is not called", "[backends]") {
  const ContextPtr context = library();
  const Graph graph = graph_of(R"(
  op mine.keep(mut c: T[*s], x: T[*s]) -> y: T[*s]
  in c: f32[2], x: f32[2]
  y = mine.keep(c, x)
  out y)",
                               context);
  give_host_function(*context, "mine.keep", grow);
  const auto failed = make_eager()->compile(graph);
  REQUIRE_FALSE(failed);
  CHECK(failed.error()[0].code == "PW1213");
  CHECK(failed.error()[0].message.find("it writes `c`") != std::string::npos);
}

TEST_CASE("host functions: tensors have their declared dtypes, whatever an engine stores",
          "[backends]") {
  const ContextPtr context = library();
  const Graph graph = graph_of(R"(
  op mine.half(...) effect
  in x: bf16[2]
  y: bf16[2] = mine.half(x){}
  out y)",
                               context);
  give_host_function(*context, "mine.half", [](const HostCall& call) -> Status {
    if (call.operands[0]->dtype != DType::bf16 || call.results[0].dtype != DType::bf16)
      return fail(error_in("test", "T", "not bf16"));
    for (std::int64_t i = 0; i < 2; ++i)
      store(DType::bf16, call.results[0].data, i, load(DType::bf16, call.operands[0]->data, i) / 2);
    return {};
  });
  for (const auto& engine : engines_with_functions())
    CHECK(values(run(graph, *engine, {{"x", tensor(DType::bf16, {2}, {3, 5})}}).returned[0]) ==
          std::vector<double>{1.5, 2.5});
}

TEST_CASE("host functions: the call is passed as it was written", "[backends]") {
  const std::string place = "test";
  const auto read = [&](const char* text) { return text_of(read_skeleton(text, place).value()); };
  CHECK(read("%0, None, %1") == "%0, None, %1");
  CHECK(read("[%0, %1], [%2], mask = $mask") == "[%0, %1], [%2], mask=$mask");
  CHECK(read("%0, (1, -2), 'a b', True, 0.5, slice(None, 4, None)") ==
        "%0, (1, -2), 'a b', True, real, slice(None, 4, None)");
  CHECK(read("device(type='cuda'), torch.float32") == "'device(type='cuda')', 'torch.float32'");
  CHECK(read("{'a': %1, 'b': [2]}, 3") == "dict(a=%1, b=[2]), 3");
  CHECK(read(R"({"a\"%0\n\x41": %1})") == "dict(a\"%0\nA=%1)");
  CHECK(read("").empty());
  for (const char* bad :
       {"%", "%0,, 1", "[%0", "%0)", "'open", "$", "a b", "{1: 2}", "{'a' 2}", "{"}) {
    INFO(bad);
    const auto failed = read_skeleton(bad, place);
    REQUIRE_FALSE(failed);
    CHECK(failed.error()[0].code == "PW1213");
  }
  CHECK(text_of(plain_skeleton(2, {"arg1", "eps"})) == "%0, $arg1, %1, eps=$eps");
  CHECK(text_of(plain_skeleton(0, {"arg0", "arg2"})) == "$arg0, None, $arg2");
}

TEST_CASE("host functions: dims of attributes are numbers", "[backends]") {
  const ContextPtr context = library();
  const Graph graph = graph_of(R"(
  op mine.rows(...) effect
  in x: f32[n, 2]
  y: i64[1] = mine.rows(x){arg1 = [n, 2 * n]}
  out y)",
                               context);
  give_host_function(*context, "mine.rows", [](const HostCall& call) -> Status {
    const auto& list = std::get<std::vector<std::int64_t>>(call.arguments[1].value);
    store(DType::i64, call.results[0].data, 0, static_cast<double>(list[0] * 100 + list[1]));
    return {};
  });
  const auto out = run(graph, *make_eager(), {{"x", Tensor(DType::f32, {3, 2})}});
  CHECK(values(out.returned[0]) == std::vector<double>{306});
}

TEST_CASE("host functions: an op without one is named before anything runs", "[backends]") {
  const ContextPtr context = library();
  const Graph graph = graph_of(R"(
  op mine.a(...) effect
  op mine.b(...) effect
  in x: f32[2]
  y: f32[2] = mine.a(x){}
  z: f32[2] = mine.b(y){}
  out z)",
                               context);
  bool called = false;
  give_host_function(*context, "mine.c", [&](const HostCall&) -> Status {
    called = true;
    return {};
  });
  for (const auto& engine : engines_with_functions()) {
    const auto compiled = engine->compile(graph);
    REQUIRE_FALSE(compiled);
    REQUIRE(compiled.error().size() == 1);
    CHECK(compiled.error()[0].code == "PW1201");
    CHECK(compiled.error()[0].message.find("mine.a, mine.b") != std::string::npos);
    CHECK(compiled.error()[0].help.find("host function") != std::string::npos);
  }
  CHECK_FALSE(called);
}

TEST_CASE("host functions: the overload may be left out, and a failure ends the run",
          "[backends]") {
  const ContextPtr context = library();
  const Graph graph = graph_of(R"(
  op mine.f.default(...) effect
  in x: f32[2]
  y: f32[2] = mine.f.default(x){}
  out y)",
                               context);
  give_host_function(*context, "mine.f",
                     [](const HostCall&) -> Status { return fail(error_in("here", "T1", "no")); });
  const auto failed = run_given(graph, *make_eager(), {{"x", Tensor(DType::f32, {2})}});
  REQUIRE_FALSE(failed);
  CHECK(failed.error()[0].code == "T1");
}

TEST_CASE("host functions: what nobody reads needs no type, what is read does", "[backends]") {
  const ContextPtr context = library();
  const std::string head = "op mine.f(...) effect\n in x: f32[2]\n y: f32[2], z = mine.f(x){}\n";
  give_host_function(*context, "mine.f", [](const HostCall& call) -> Status {
    std::memcpy(call.results[0].data, call.operands[0]->data, call.results[0].bytes());
    return {};
  });
  const Graph unread = graph_of(head + "out y", context);
  for (const auto& engine : engines_with_functions())
    CHECK(values(run(unread, *engine, {{"x", tensor(DType::f32, {2}, {1, 2})}}).returned[0]) ==
          std::vector<double>{1, 2});
  const Graph read = graph_of(head + "w: f32[2] = mine.f(z){}\n out w", context);
  const auto failed = make_eager()->compile(read);
  REQUIRE_FALSE(failed);
  CHECK(failed.error()[0].place.find("value z") != std::string::npos);
  CHECK(failed.error()[0].message.find("mine.f") != std::string::npos);
}

TEST_CASE("given tensors: symbols are read off the extents", "[backends]") {
  const Graph graph = graph_of("in x: f32[n, 2], y: f32[2 * m]  a = neg(x)  b = neg(y)  out a, b");
  GivenInputs inputs{{"x", Tensor(DType::f32, {3, 2})}, {"y", Tensor(DType::f32, {8})}};
  const Symbols symbols = symbols_of(graph, inputs).value();
  CHECK(symbols.at("n") == 3);
  CHECK(symbols.at("m") == 4);
  CHECK(run(graph, *make_eager(), inputs).returned[1].extents() == Extents{8});
  inputs.insert_or_assign("y", Tensor(DType::f32, {7}));
  CHECK_FALSE(run_given(graph, *make_eager(), inputs));
  inputs.erase("y");
  CHECK(run_given(graph, *make_eager(), inputs).error()[0].code == "PW1203");
}

TEST_CASE("written inputs: steps see what the one before wrote", "[backends]") {
  const ContextPtr context = library();
  Graph graph = graph_of(R"(
  in x: f32[2]
  in buffer count: f32[2]
  next = count + x
  y = next * 10.0
  out y
  write count = next)",
                         context);
  CHECK(graph.returned_count() == 1);
  const GivenInputs inputs{{"x", tensor(DType::f32, {2}, {1, 2})},
                           {"count", tensor(DType::f32, {2}, {5, 5})}};
  for (const auto& engine : engines_with_functions()) {
    const GivenOutputs out = run(graph, *engine, inputs);
    REQUIRE(out.returned.size() == 1);
    CHECK(values(out.returned[0]) == std::vector<double>{60, 70});
    REQUIRE(out.written.size() == 1);
    CHECK(out.written[0].first == "count");
    CHECK(values(out.written[0].second) == std::vector<double>{6, 7});
  }
  Weights weights(graph, 1);
  for (const auto& [name, tensor] : inputs) weights.give(name, tensor);
  const auto eager = make_eager();
  for (double step : {1.0, 2.0, 3.0}) {
    const auto out = run_whole(graph, *eager, weights, one_sequence(1));
    REQUIRE(out);
    CHECK(values((*out)[1]) == std::vector<double>{5 + step, 5 + 2 * step});
    CHECK(weights.write_back(graph, *out, one_sequence(1)) == std::vector<std::string>{"count"});
  }
}

TEST_CASE("host functions: on a device they run on the host, between captured pieces",
          "[backends]") {
  const ContextPtr context = library();
  const Graph graph = graph_of(R"(
  symbol n in 1..64 tokens
  op mine.grow(...) effect
  op mine.cut(...) effect splitting
  in x: f32[n, 2]
  in buffer seen: f32[n, 2]
  a = x * 3.0
  k: f32[n, 2] = mine.cut(a){}
  b = k + a
  r: f32[n, 2], b1: f32[n, 2] = mine.grow(b){writes = [0]}
  y = b1 + r
  out y
  write seen = b1)",
                               context);
  give_host_function(*context, "mine.grow", grow);
  give_host_function(*context, "mine.cut", [](const HostCall& call) -> Status {
    std::memcpy(call.results[0].data, call.operands[0]->data, call.results[0].bytes());
    return {};
  });
  cuda::HostDriver driver;
  const auto done = run_given(graph, driver, {{"x", tensor(DType::f32, {1, 2}, {1, 2})}});
  INFO((done ? std::string() : render(done.error(), context->sources)));
  REQUIRE(done);
  CHECK(values(done->returned[0]) == std::vector<double>{21, 39});  // 3 * (6x + 1)
  CHECK(values(done->written[0].second) == std::vector<double>{7, 13});
}

TEST_CASE("host functions: rows of padding are not seen", "[backends]") {
  const ContextPtr context = library();
  const Graph graph = graph_of(R"(
  symbol n in 1..64 tokens
  op mine.total(...) effect
  in x: f32[n, 2]
  a = x * 2.0
  y: f32[n, 2], a1: f32[n, 2] = mine.total(a){writes = [0], rows = [n]}
  z = y + a1
  out z)",
                               context);
  give_host_function(*context, "mine.total", [](const HostCall& call) -> Status {
    const std::int64_t rows = std::get<std::vector<std::int64_t>>(call.attributes[0].second)[0];
    if (call.operands[0]->extents != Extents{rows, 2}) return fail(error_in("t", "T", "padded"));
    float sum = 0;
    for (std::int64_t i = 0; i < 2 * rows; ++i) sum += floats(*call.operands[0])[i];
    for (std::int64_t i = 0; i < 2 * rows; ++i) floats(call.results[0])[i] = sum;
    floats(*call.operands[0])[0] = 100;
    return {};
  });
  const Tensor x = tensor(DType::f32, {4, 2}, {1, 2, 3, 4, 50, 50, 50, 50});
  for (const auto& engine : engines_with_functions()) {
    INFO(engine->name());
    const auto executable = engine->compile(graph).value();
    Tensor z(DType::f32, {4, 2});
    const std::vector<TensorView> in = {x.view()}, out = {z.view()};
    REQUIRE(executable->run(in, out, {{{"n", 4}}, nullptr, 2}));
    const std::vector<double> got = values(z);
    CHECK(std::vector<double>(got.begin(), got.begin() + 4) ==
          std::vector<double>{120, 24, 26, 28});
  }
}

TEST_CASE("host functions: a plan runs them in their pieces", "[backends]") {
  const ContextPtr context = library();
  const Graph graph = graph_of(R"(
  symbol n in 1..64 tokens
  op mine.grow(...) effect
  in x: f32[n, 2]
  a = x * 3.0
  r: f32[n, 2], a1: f32[n, 2] = mine.grow(a){writes = [0]}
  y = a1 + r
  out y)",
                               context);
  give_host_function(*context, "mine.grow", grow);
  const auto ops = splitting_ops(context, nullptr, {}, {});
  const StitchedGraph pieces = split(graph, *ops, {{}, true, has_kernel}).value();
  REQUIRE(pieces.pieces.size() == 1);
  CHECK(pieces.pieces[PieceId(0)].host_op == "mine.grow");
  PlanOptions options;
  options.max_tokens = 64;
  const Plan plan = make_plan(pieces, graph, options).value();
  CHECK_FALSE(plan.steps[0].captured);
  CHECK(plan.steps[0].reason == "contains op mine.grow, which has no kernel");
  CHECK(plan.mode == "none");
  const auto eager = make_eager();
  Runner runner = Runner::make(pieces, graph, plan, *eager).value();
  Weights weights(graph, 1);
  weights.give("x", tensor(DType::f32, {2, 2}, {1, 2, 3, 4}));
  const auto done = runner.run(one_sequence(2), weights);
  REQUIRE(done);
  CHECK(values(done->outputs[0]) == std::vector<double>{12, 21, 30, 39});
}
