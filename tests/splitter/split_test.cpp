#include "tests/catch.hpp"
#include "tests/splitter/graphs.hpp"

using namespace pw;
using pw::test::Builder;

namespace {

/// Every value that a piece reads was made by an earlier piece or is an input, and no node is lost
/// or reordered.
void check_well_formed(const Graph& source, const StitchedGraph& stitched) {
  std::vector<bool> known(source.value_bound());
  for (const ValueId v : source.inputs()) known[v.index] = true;
  std::vector<int> count(source.node_bound());
  for (const Piece& piece : stitched.pieces) {
    for (const ValueId v : piece.inputs) CHECK(known[v.index]);
    for (const ValueId v : piece.outputs) known[v.index] = true;
    for (std::size_t i = 0; i + 1 < piece.nodes.size(); ++i)
      CHECK(source.label(piece.nodes[i]) < source.label(piece.nodes[i + 1]));
    for (const NodeId n : piece.nodes) ++count[n.index];
    CHECK(piece.graph.node_count() == piece.nodes.size());
    CHECK(piece.graph.inputs().size() == piece.inputs.size());
    CHECK(piece.graph.outputs().size() == piece.outputs.size());
  }
  for (const ValueId v : source.outputs()) CHECK(known[v.index]);
  for (NodeId n = source.first(); n.valid(); n = source.next(n))
    if (source.op_of(n).name != "constant") CHECK(count[n.index] == 1);
  CHECK(stitched.stitch.node_count() == stitched.pieces.size());
}

}  // namespace

TEST_CASE("split: the toy model has 5 pieces, 3 of them capturable", "[splitter]") {
  Builder b = pw::test::toy();
  const StitchedGraph s = b.cut({"attention"}, false);
  CHECK(s.pieces.size() == 5);
  CHECK(s.capturable() == 3);
  CHECK(s.classes.size() == 5);
  CHECK(s.capturable_classes() == 3);
  check_well_formed(b.graph, s);
  CHECK(s.pieces[PieceId(1)].splitting);
  CHECK(s.pieces[PieceId(1)].nodes.size() == 1);
}

TEST_CASE("split: no splitting op gives one piece", "[splitter]") {
  Builder b = pw::test::toy();
  const StitchedGraph s = b.cut({});
  CHECK(s.pieces.size() == 1);
  CHECK(s.capturable() == 1);
  check_well_formed(b.graph, s);
}

TEST_CASE("split: N separated attentions give 2N+1 pieces and three classes", "[splitter]") {
  const int n = GENERATE(1, 3, 12);
  Builder b;
  ValueId x = b.input("x");
  x = b.one("embed", {x});
  for (int i = 0; i < n; ++i) {
    x = b.attention(x, i);
    x = b.one("mm", {x, b.input("w" + std::to_string(i), InputKind::weight)});
  }
  b.graph.add_output(x);
  const StitchedGraph s = b.cut({"attention"});
  CHECK(s.pieces.size() == static_cast<std::size_t>(2 * n + 1));
  CHECK(s.capturable() == static_cast<std::size_t>(n + 1));
  CHECK(s.classes.size() == 3);
  CHECK(s.capturable_classes() == 2);
  check_well_formed(b.graph, s);
}

TEST_CASE("split: splitting ops that follow each other share a piece", "[splitter]") {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId a = b.attention(x, 0);
  b.literal(3);  // a literal between them does not count
  const ValueId c = b.attention(a, 1);
  b.graph.add_output(b.one("add", {c, x}));
  const StitchedGraph s = b.cut({"attention"});
  REQUIRE(s.pieces.size() == 2);
  CHECK(s.pieces[PieceId(0)].splitting);
  CHECK(s.pieces[PieceId(0)].nodes.size() == 2);
}

TEST_CASE("split: a multi-result op crosses as values", "[splitter]") {
  Builder b;
  const ValueId x = b.input("x");
  const auto parts = b.call("split", {x}, 2);
  const ValueId y = b.one("relu", {parts[0]});
  b.graph.add_output(b.one("cat", {y, parts[1]}));
  const StitchedGraph s = b.cut({"split"});
  REQUIRE(s.pieces.size() == 2);
  CHECK(s.pieces[PieceId(0)].outputs == parts);
  CHECK(s.pieces[PieceId(1)].inputs == parts);
  check_well_formed(b.graph, s);
}

TEST_CASE("split: a lone allocation joins the previous capturable piece", "[splitter]") {
  Builder b;
  ValueId x = b.input("x");
  x = b.one("add", {x, x});
  x = b.attention(x, 0);
  const ValueId buffer = b.one("empty", {});
  x = b.one("attention", {x, x, x, buffer});
  b.graph.add_output(b.one("add", {x, x}));
  const StitchedGraph s = b.cut({"attention"});
  REQUIRE(s.pieces.size() == 4);  // add+empty, attention, attention, add
  CHECK(s.pieces[PieceId(0)].nodes.size() == 2);
  CHECK(s.pieces[PieceId(0)].outputs.size() == 2);
  CHECK(s.capturable() == 2);
  check_well_formed(b.graph, s);
}

TEST_CASE("split: an allocation stays where its operand is made", "[splitter]") {
  Builder b;
  ValueId x = b.input("x");
  x = b.one("add", {x, x});
  x = b.attention(x, 0);
  const ValueId buffer = b.one("empty", {x});
  x = b.one("attention", {x, x, x, buffer});
  b.graph.add_output(x);
  const StitchedGraph s = b.cut({"attention"});
  CHECK(s.pieces.size() == 4);
  CHECK(s.pieces[PieceId(2)].nodes.size() == 1);
  check_well_formed(b.graph, s);
}

TEST_CASE("split: what waits for nothing goes before the splitting ops around it", "[splitter]") {
  Builder b;
  const ValueId x = b.one("embed", {b.input("x")});
  const ValueId scale = b.input("scale");
  const ValueId first = b.attention(x, 0);
  const ValueId free = b.one("relu", {b.one("relu", {scale})});  // of an input only
  const ValueId second = b.attention(free, 1);
  const ValueId bound = b.one("relu", {first});  // of the first attention
  const ValueId third = b.attention(bound, 2);
  for (const ValueId v : {second, third}) b.graph.add_output(v);
  const StitchedGraph s = b.cut({"attention"}, false);
  REQUIRE(s.pieces.size() == 4);
  CHECK(s.pieces[PieceId(0)].nodes.size() == 3);
  CHECK(s.pieces[PieceId(1)].splitting);
  CHECK(s.pieces[PieceId(1)].nodes.size() == 2);
  CHECK(s.pieces[PieceId(2)].nodes.size() == 1);
  check_well_formed(b.graph, s);
}

TEST_CASE("split: literals are copied into the pieces that read them", "[splitter]") {
  Builder b;
  ValueId x = b.input("x");
  const ValueId two = b.literal(2);
  x = b.one("mul", {x, two});
  x = b.attention(x, 0);
  b.graph.add_output(b.one("mul", {x, two}));
  b.graph.add_output(two);
  const StitchedGraph s = b.cut({"attention"});
  REQUIRE(s.pieces.size() == 3);
  CHECK(s.pieces[PieceId(0)].outputs.size() == 1);
  CHECK(s.pieces[PieceId(2)].inputs.size() == 1);
  CHECK(s.pieces[PieceId(2)].outputs.size() == 2);
  check_well_formed(b.graph, s);
}

TEST_CASE("split: classes abstract layer names and weights, nothing else", "[splitter]") {
  Builder b;
  const auto eps = [&](double e) { return AttributeList{{b.context->strings.intern("eps"), e}}; };
  ValueId x = b.input("x");
  for (int i = 0; i < 4; ++i) {
    x = b.attention(x, i);
    x = b.one("norm", {x, b.input("w" + std::to_string(i), InputKind::weight)},
              eps(i == 2 ? 1e-5 : 1e-6));
  }
  b.graph.add_output(x);
  const StitchedGraph s = b.cut({"attention"});
  REQUIRE(s.pieces.size() == 8);
  REQUIRE(s.classes.size() == 3);  // attention; eps 1e-6 (three members); eps 1e-5
  CHECK(s.classes[PieceClassId(0)].members.size() == 4);
  CHECK(s.classes[PieceClassId(1)].members.size() == 3);
  CHECK(s.classes[PieceClassId(2)].members == std::vector<PieceId>{PieceId(5)});
}

TEST_CASE("split: two attentions of one layer differ from those of two", "[splitter]") {
  Builder b;
  ValueId x = b.input("x");
  for (int i = 0; i < 3; ++i) {
    x = b.attention(x, 2 * i);
    x = b.attention(x, i == 2 ? 2 * i : 2 * i + 1);
    x = b.one("relu", {x});
  }
  b.graph.add_output(x);
  const StitchedGraph s = b.cut({"attention"});
  CHECK(s.pieces.size() == 6);
  CHECK(s.classes.size() == 3);
}

TEST_CASE("split: a hundred thousand nodes stay linear", "[splitter]") {
  Builder b;
  ValueId x = b.input("x");
  for (int i = 0; i < 20000; ++i) {
    for (int j = 0; j < 4; ++j) x = b.one("relu", {x});
    x = b.attention(x, i);
  }
  b.graph.add_output(x);
  const StitchedGraph s = b.cut({"attention"});
  CHECK(s.pieces.size() == 40000);
  CHECK(s.classes.size() == 2);
}
