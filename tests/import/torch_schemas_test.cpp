#include "import/fx/torch_schemas.hpp"

#include <algorithm>
#include <string>

#include "tests/catch.hpp"

using namespace pw::fx;

namespace {

Schema schema(std::string_view target) {
  CAPTURE(target);
  std::optional<Schema> found = find_schema(target);
  REQUIRE(found);
  return *found;
}

// The names of the arguments that are written.
std::string written(std::string_view target) {
  std::string out;
  for (const Schema::Argument& a : schema(target).arguments)
    if (a.written) out += (out.empty() ? "" : " ") + std::string(a.name);
  return out;
}

}  // namespace

// Expected values: the schemas in PyTorch's native_functions.yaml.
TEST_CASE("torch schemas: what an op writes", "[fx][schemas]") {
  CHECK(written("aten.add_.Tensor") == "self");
  CHECK(written("aten.add.out") == "out");
  CHECK(written("aten.topk.values") == "values indices");
  CHECK(written("aten._foreach_add_.Scalar") == "self");
}

TEST_CASE("torch schemas: arguments and results of an in-place op", "[fx][schemas]") {
  Schema add = schema(
      "aten.add_.Tensor");  // (Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
  CHECK(add.target == "aten.add_.Tensor");
  REQUIRE(add.arguments.size() == 3);
  CHECK(add.arguments[0].name == "self");
  CHECK(add.arguments[0].tensor);
  CHECK(add.arguments[0].alias == 'a');
  CHECK(add.arguments[1].tensor);
  CHECK(add.arguments[1].alias == 0);
  CHECK_FALSE(add.arguments[1].written);
  CHECK(add.arguments[2].name == "alpha");
  CHECK_FALSE(add.arguments[2].tensor);
  CHECK(add.arguments[2].optional);
  CHECK(add.arguments[2].keyword_only);
  REQUIRE(add.results.size() == 1);
  CHECK(add.results[0].alias == 'a');
  CHECK(add.results[0].written);
  CHECK_FALSE(add.pure());
}

TEST_CASE("torch schemas: pure ops, views, random ops, effects", "[fx][schemas]") {
  Schema cumsum = schema("aten.cumsum");
  CHECK(cumsum.pure());
  CHECK_FALSE(cumsum.aliases());
  CHECK(schema("aten.cumsum.default").target == "aten.cumsum");

  Schema split = schema(
      "aten.split.Tensor");  // (Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
  CHECK(split.pure());
  CHECK(split.aliases());
  CHECK(split.results.at(0).list);
  CHECK(split.results.at(0).alias == split.arguments.at(0).alias);

  CHECK(schema("aten.index.Tensor").arguments.at(1).list);  // Tensor?[] indices
  CHECK(schema("aten.rand").random);
  CHECK_FALSE(schema("aten.rand").pure());
  CHECK(schema("aten.native_dropout").random);
  CHECK(schema("aten._assert_async.msg").effect);
  CHECK(schema("aten.t_").reshapes);
  CHECK(schema("aten.sym_size.int").results.size() == 1);
  CHECK_FALSE(schema("aten.sym_size.int").results.at(0).tensor);
  CHECK(schema("prims.convert_element_type").pure());
  CHECK(schema("_c10d_functional.all_reduce").pure());
}

TEST_CASE("torch schemas: what the schemas leave out is in the table", "[fx][schemas]") {
  CHECK(written("aten.native_batch_norm") == "running_mean running_var");
  CHECK(schema("aten.broadcast_tensors").aliases());
  CHECK(schema("aten.dropout").aliases());  // in evaluation it gives its input
  CHECK(written("c10d.recv_") == "tensors");
}

TEST_CASE("torch schemas: every line is found by its own name, and nothing else is",
          "[fx][schemas]") {
  std::string_view rest = schema_table(), last;
  std::size_t lines = 0;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.empty() || line[0] == '#') continue;
    std::string_view target = line.substr(0, line.find(' '));
    INFO(target);
    REQUIRE(last < target);
    REQUIRE(schema_line(target) == line);
    last = target;
    ++lines;
  }
  CHECK(lines > 3000);
  for (std::string_view none :
       {"", "aten", "aten.add_.Nothing", "zzz.zzz", "#", "aten.cumsum >", "_"})
    CHECK_FALSE(find_schema(none));
}
