// ONNX models from the bytes of a file to numbers, and back to a file.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "backends/eager/eager.hpp"
#include "dsl/dsl.hpp"
#include "dsl/graph_formats.hpp"
#include "engines/run_given.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "import/onnx/export.hpp"
#include "tests/catch.hpp"
#include "tests/onnx/test_model.hpp"

using namespace pw;
namespace proto = pw_test_onnx;
using pw_test_onnx::kFloat;
using pw_test_onnx::TestModel;

namespace {

std::string printed(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) out += d.code + ": " + d.place + ": " + d.message + "\n";
  return out;
}

/// All in one context, so that the op library is read once.
Result<ReadGraph> read(const std::string& bytes, const std::string& file = "model.onnx") {
  static const ContextPtr context = std::make_shared<Context>();
  FxOptions options;
  options.file = file;
  return read_graph(context, bytes, options);
}

ReadGraph imported(const TestModel& model) {
  Result<ReadGraph> out = read(model.bytes());
  if (!out) FAIL(printed(out.error()));
  CHECK(printed(verify(out->graph)) == "");
  return std::move(*out);
}

std::string error_of(const TestModel& model, const std::string& file = "model.onnx") {
  const Result<ReadGraph> out = read(model.bytes(), file);
  return out ? "" : printed(out.error());
}

Tensor floats(const Extents& extents, const std::vector<float>& values) {
  Tensor out(DType::f32, extents);
  std::memcpy(out.data(), values.data(), values.size() * sizeof(float));
  return out;
}

std::vector<float> values_of(const Graph& graph, GivenInputs inputs) {
  inputs.merge(contents_of_inputs(graph));
  const auto backend = make_eager();
  const auto done = run_given(graph, *backend, inputs);
  if (!done) FAIL(printed(done.error()));
  const TensorView view = done->returned.at(0).view();
  std::vector<float> out(static_cast<std::size_t>(view.count()));
  std::memcpy(out.data(), view.data, view.bytes());
  return out;
}

TestModel weighted() {
  TestModel m;
  m.in("x", {"n", "2"})
      .out("y", {"n", "2"})
      .node("Relu", {"x"}, {"h"})
      .node("Add", {"h", "w"}, {"y"});
  auto& w = m.tensor("w", {2});
  w.add_float_data(1);
  w.add_float_data(2);
  return m;
}

/// A folder that is removed when the test ends.
struct TestFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("pw-onnx-{}", ::getpid());
  TestFolder() { std::filesystem::create_directories(path / "model"); }
  ~TestFolder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
  }
};

/// A model whose weight is in another file.
TestModel external(const std::string& location, const std::string& offset = "4",
                   const std::string& length = "8") {
  TestModel m;
  m.in("x", {"2"}).out("y", {"2"}).node("Mul", {"x", "w"}, {"y"});
  auto& w = m.tensor("w", {2});
  w.set_data_location(1);
  for (const auto& [key, value] :
       {std::pair("location", location), {"offset", offset}, {"length", length}}) {
    w.add_external_data()->set_key(key);
    w.mutable_external_data()->rbegin()->set_value(value);
  }
  return m;
}

}  // namespace

TEST_CASE("onnx: initialisers are weights, parameters of dims are symbols", "[onnx]") {
  const ReadGraph read = imported(weighted());
  CHECK(read.dump->opaque.empty());
  CHECK(read.dump->form == "ONNX, opset 21");
  REQUIRE(read.graph.inputs().size() == 2);
  CHECK(read.graph.input_kind(read.graph.inputs()[1]) == InputKind::weight);
  CHECK(read.graph.facts.find("n") != nullptr);
  CHECK(values_of(read.graph, {{"x", floats({2, 2}, {-1, 5, 3, -7})}}) ==
        std::vector<float>{1, 7, 4, 2});
}

TEST_CASE("onnx: shapes are calculated while importing, symbols among them", "[onnx]") {
  TestModel m;
  m.in("x", {"n", "2", "3"}).out("y", {"n", "6"}).numbers("zero", {0}).numbers("rest", {-1});
  m.node("Shape", {"x"}, {"s"}).node("Gather", {"s", "zero"}, {"n0"}, {{"axis", 0}});
  m.node("Concat", {"n0", "rest"}, {"to"}, {{"axis", 0}}).node("Reshape", {"x", "to"}, {"y"});
  const ReadGraph read = imported(m);
  CHECK(read.dump->opaque.empty());
  CHECK(read.graph.node_count() == 1);
  const ValueId y = read.graph.outputs()[0];
  CHECK(read.graph.context().types.print(read.graph.type(y)) == "f32[n, 6]");
}

TEST_CASE("onnx: what an operator means depends on the version of its set", "[onnx]") {
  const auto sums = [](std::int64_t opset) {
    TestModel m(opset);
    m.in("x", {"1", "2", "2"})
        .out("y", {"1", "2", "2"})
        .node("Softmax", {"x"}, {"y"}, {{"axis", 1}});
    const std::vector<float> y =
        values_of(imported(m).graph, {{"x", floats({1, 2, 2}, {0, 0, 0, 0})}});
    return y[0];
  };
  CHECK(sums(12) == 0.25f);  // all axes from the second one on are one
  CHECK(sums(13) == 0.5f);
}

TEST_CASE("onnx: an ignored label takes part in no loss, whatever its scores", "[onnx]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::string weight : {"", "w"}) {
    TestModel m;
    m.in("x", {"2", "2"}).out("y", {}).numbers("at", {-1, 1});
    m.in("w", {"2"})
        .node("NegativeLogLikelihoodLoss", {"x", "at", weight}, {"y"}, {{"ignore_index", -1}});
    const std::vector<float> y = values_of(
        imported(m).graph,
        {{"x", floats({2, 2}, {-kInfinity, 1, 2, -3})}, {"w", floats({2}, {kInfinity, 2})}});
    CHECK(y == std::vector<float>{3});
  }
}

TEST_CASE("onnx: the bodies of functions stand in their place", "[onnx]") {
  TestModel m;
  m.in("x", {"2"}).out("y", {"2"}).model.mutable_graph()->add_node();
  TestModel::fill(*m.model.mutable_graph()->mutable_node(0), "Scaled", {"x"}, {"y"}, {{"by", 3}});
  m.model.mutable_graph()->mutable_node(0)->set_domain("mine");
  m.model.add_opset_import()->set_domain("mine");
  auto& f = *m.model.add_functions();
  f.set_name("Scaled");
  f.set_domain("mine");
  f.add_input("a");
  f.add_output("r");
  f.add_opset_import()->set_version(21);
  TestModel::fill(*f.add_node(), "Constant", {}, {"k"});
  auto& k = *f.mutable_node(0)->add_attribute();
  k.set_name("value_int");
  k.set_ref_attr_name("by");
  TestModel::fill(*f.add_node(), "Cast", {"k"}, {"kf"}, {{"to", kFloat}});
  TestModel::fill(*f.add_node(), "Mul", {"a", "kf"}, {"r"});
  CHECK(values_of(imported(m).graph, {{"x", floats({2}, {1, 2})}}) == std::vector<float>{3, 6});
}

TEST_CASE("onnx: what has no meaning stays a call, and the import reports why", "[onnx]") {
  TestModel m;
  m.in("x", {"2"})
      .out("y", {"2"})
      .node("Relu", {"x"}, {"h"}, {{"odd", 1}})
      .node("Mystery", {"h"}, {"y"});
  const ReadGraph read = imported(m);
  CHECK(read.dump->opaque == std::map<std::string, int>{{"onnx.Mystery", 1}, {"onnx.Relu", 1}});
  bool found = false;
  for (const auto& [reason, count] : read.dump->reasons)
    found = found || reason.find("`odd`") != std::string::npos;
  CHECK(found);
}

TEST_CASE("onnx: external data lies beside the model, and nowhere else", "[onnx]") {
  const TestFolder folder;
  const std::string bytes("....\0\0\0\x40\0\0\x40\x40", 12);  // 2 and 3, behind four bytes
  folder.write("model/w.bin", bytes);
  folder.write("outside.bin", bytes);
  const std::string file = (folder.path / "model/m.onnx").string();
  const Result<ReadGraph> good = read(external("w.bin").bytes(), file);
  REQUIRE(good.has_value());
  CHECK(values_of(good->graph, {{"x", floats({2}, {1, 1})}}) == std::vector<float>{2, 3});
  std::filesystem::create_symlink(folder.path / "outside.bin", folder.path / "model/link.bin");
  for (const std::string& location :
       {std::string("../outside.bin"), (folder.path / "outside.bin").string(),
        std::string("link.bin"), std::string("absent.bin"), std::string(), std::string("."),
        std::string("w.bin\0x", 7)})
    CHECK_THAT(error_of(external(location), file), Catch::StartsWith("PW0521"));
  CHECK_THAT(error_of(external("w.bin", "5"), file), Catch::Contains("which has 12"));
  CHECK_THAT(error_of(external("w.bin", "4", "7"), file), Catch::Contains("7 bytes"));
  CHECK_THAT(error_of(external("w.bin", "-1"), file), Catch::Contains("not a number"));
  CHECK_THAT(error_of(external("w.bin", "18446744073709551615"), file),
             Catch::StartsWith("PW0521"));
}

TEST_CASE("onnx: models that contradict themselves are refused", "[onnx]") {
  TestModel newer(999);
  newer.in("x", {"2"}).out("y", {"2"}).node("Relu", {"x"}, {"y"});
  CHECK_THAT(error_of(newer), Catch::StartsWith("PW0523"));
  TestModel unreadable;
  unreadable.in("x\xff", {"2"}).out("y", {"2"}).node("Relu", {"x\xff"}, {"y"});
  CHECK_THAT(error_of(unreadable), Catch::Contains("UTF-8"));
  TestModel nowhere;
  nowhere.in("x", {"2"}).out("y", {"2"}).node("Add", {"x", "z"}, {"y"});
  CHECK_THAT(error_of(nowhere), Catch::Contains("`z`"));
  TestModel unmade;
  unmade.in("x", {"2"}).out("y", {"2"});
  CHECK_THAT(error_of(unmade), Catch::StartsWith("PW0522"));
  TestModel wrong;
  wrong.in("x", {"2"}).out("y", {"3"}).node("Relu", {"x"}, {"y"});
  CHECK_THAT(error_of(wrong), Catch::StartsWith("PW0525"));
  TestModel twice;
  twice.in("x", {"2"}).out("y", {"2"}).node("Relu", {"x"}, {"y"}).node("Neg", {"x"}, {"y"});
  CHECK_THAT(error_of(twice), Catch::Contains("duplicate value"));
  TestModel few = weighted();
  few.model.mutable_graph()->mutable_initializer(0)->add_dims(2);
  CHECK_THAT(error_of(few), Catch::StartsWith("PW0521"));
  TestModel huge = weighted();
  huge.model.mutable_graph()->mutable_initializer(0)->set_dims(0, std::int64_t{1} << 62);
  CHECK_THAT(error_of(huge), Catch::StartsWith("PW0521"));
}

TEST_CASE("onnx: names and scopes of nodes are module paths", "[onnx]") {
  TestModel m;
  m.in("x", {"2"}).out("d", {"2"});
  m.node("Relu", {"x"}, {"a"}).node("Exp", {"a"}, {"b"}).node("Neg", {"b"}, {"c"});
  m.node("Abs", {"c"}, {"d"});
  auto& nodes = *m.model.mutable_graph()->mutable_node();
  nodes[0].set_name("/layer1/layer1.0/conv1/Relu");  // torch.onnx repeats the outer name
  nodes[1].set_name("model/dense/Exp");              // tf2onnx
  nodes[2].set_name("node_neg");
  auto& scopes = *nodes[2].add_metadata_props();
  scopes.set_key("pkg.torch.onnx.name_scopes");
  scopes.set_value("['', 'layers', 'layers.0', 'layers.0.mlp', 'neg']");
  nodes[3].set_name("abs_1");
  const ReadGraph read = imported(m);
  const auto group = [&](std::string_view value) {
    return std::string(read.graph.group(read.graph.producer(read.graph.find_value(value))));
  };
  CHECK(group("a") == "layer1.0.conv1");
  CHECK(group("b") == "model.dense");
  CHECK(group("c") == "layers.0.mlp");
  CHECK(group("d").empty());
}

TEST_CASE("onnx: a file that is cut off, or damaged, is refused or read, and nothing else",
          "[onnx][fuzz]") {
  const std::string whole = weighted().bytes();
  for (std::size_t i = 3; i < whole.size(); ++i) (void)read(whole.substr(0, i));
  const auto seed = 20261123u;
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = whole;
    for (int k = 0; k < 1 + i % 3; ++k)
      bytes[3 + random() % (bytes.size() - 3)] = static_cast<char>(random());
    (void)read(bytes);
  }
}

TEST_CASE("onnx: a graph that is written reads back with its numbers", "[onnx]") {
  const ReadGraph first = imported(weighted());
  const auto written = export_onnx(first.graph);
  if (!written) FAIL(printed(written.error()));
  CHECK(written->custom.empty());
  proto::Model model;
  REQUIRE(model.ParseFromString(written->bytes));
  CHECK(model.graph().initializer_size() == 1);
  const Result<ReadGraph> again = read(written->bytes);
  if (!again) FAIL(printed(again.error()));
  const GivenInputs inputs{{"x", floats({2, 2}, {-1, 5, 3, -7})}};
  CHECK(values_of(again->graph, inputs) == values_of(first.graph, inputs));
}
