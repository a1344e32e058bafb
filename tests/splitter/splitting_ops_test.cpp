#include "tests/catch.hpp"
#include "tests/splitter/graphs.hpp"

using namespace pw;
using pw::test::Builder;

TEST_CASE("split: which ops split", "[splitter]") {
  Builder b = pw::test::toy();
  Traits splitting;
  splitting.splitting = true;
  const OpId mamba = b.op("mamba", splitting);
  Op unknown;
  unknown.name = "from_a_dump";
  unknown.imported = true;
  REQUIRE(b.context->ops.declare(unknown));
  unknown.name = "mamba.default";  // an overload of an op that is in the list
  const OpId overload = *b.context->ops.declare(unknown);
  auto ids = splitting_ops(b.context, nullptr, {}, {{"attention"}, true});
  REQUIRE(ids.has_value());
  CHECK(*ids == std::vector<OpId>{b.op("attention"), mamba, overload});
  const auto bad = splitting_ops(b.context, nullptr, {}, {{"atention"}, true});
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().front().code == "PW0702");
  CHECK(bad.error().front().help.find("attention") != std::string::npos);
}
