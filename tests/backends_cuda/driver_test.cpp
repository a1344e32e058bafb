// Recorded graphs: the edges they need, and what the host driver finds wrong with them.
#include <fmt/format.h>

#include "base/hash.hpp"
#include "cuda/device/host_driver.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::cuda;

namespace {

DeviceTensor bytes(Address address, std::int64_t count) { return {DType::u8, {count}, address}; }

LaunchNode copy(DeviceTensor from, DeviceTensor to) {
  LaunchNode node;
  node.kind = LaunchNode::Kind::copy;
  node.name = "copy";
  node.reads = {std::move(from)};
  node.writes = {std::move(to)};
  return node;
}

RecordedGraph random_graph(Random& random) {
  RecordedGraph graph;
  graph.name = "random";
  const std::size_t nodes = 1 + random.below(100);
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto any = [&] {
      return bytes(4096 + 8 * random.below(24), static_cast<std::int64_t>(random.below(17)));
    };
    DeviceTensor from = any(), to = any();
    graph.nodes.push_back(copy(from, to));
    if (random.below(3) == 0) graph.nodes.back().reads.push_back(any());
  }
  return graph;
}

bool ordered(const RecordedGraph& graph) {
  const Ancestors ancestors(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (std::size_t before = 0; before < i; ++before)
      if (conflict(graph.nodes[before], graph.nodes[i]) && !ancestors.has(i, before)) return false;
  return true;
}

std::string code(const Diagnostics& diagnostics) { return diagnostics.front().code; }

}  // namespace

TEST_CASE("recorded graphs: conflicts are ordered, and no edge is there for nothing", "[cuda]") {
  const std::uint64_t seed = 11;
  INFO("seed " << seed);
  Random random(seed);
  std::size_t edges = 0;
  for (int round = 0; round < 200; ++round) {
    RecordedGraph graph = random_graph(random);
    order_nodes(graph);
    REQUIRE(ordered(graph));
    for (LaunchNode& node : graph.nodes) {
      for (std::size_t e = 0; e < node.after.size(); ++e) {
        const std::size_t before = node.after[e];
        node.after.erase(node.after.begin() + static_cast<std::ptrdiff_t>(e));
        CHECK(!ordered(graph));
        node.after.insert(node.after.begin() + static_cast<std::ptrdiff_t>(e), before);
        ++edges;
      }
    }
  }
  CHECK(edges > 1000);
}

TEST_CASE("recorded graphs: read after write, write after read, write after write", "[cuda]") {
  const auto after = [](LaunchNode a, LaunchNode b) {
    RecordedGraph graph{"g", {std::move(a), std::move(b)}};
    order_nodes(graph);
    return !graph.nodes[1].after.empty();
  };
  const DeviceTensor x = bytes(0x1000, 64), y = bytes(0x2000, 64), z = bytes(0x3000, 64);
  CHECK(after(copy(x, y), copy(y, z)));
  CHECK(after(copy(x, y), copy(z, x)));
  CHECK(after(copy(x, z), copy(y, z)));
  CHECK(!after(copy(x, y), copy(x, z)));
  CHECK(after(copy(x, y), copy(bytes(0x203f, 1), z)));   // the last byte
  CHECK(!after(copy(x, y), copy(bytes(0x2040, 1), z)));  // the one behind it
  CHECK(!after(copy(x, y), copy(bytes(0x2000, 0), z)));  // no byte
}

TEST_CASE("host driver: memory is counted, up to the given capacity", "[cuda]") {
  HostDriverOptions options;
  options.capacity = 1024;
  HostDriver driver(options);
  const auto a = driver.allocate(1), b = driver.allocate(257);
  REQUIRE((a && b));
  CHECK(*a % 256 == 0);
  CHECK(driver.allocated() == 768);
  CHECK(driver.memory().free == 256);
  const auto c = driver.allocate(257);
  REQUIRE(!c);
  CHECK(code(c.error()) == "PW1250");
  driver.release(*b);
  CHECK(driver.allocated() == 256);
  CHECK(driver.allocate(257));
  const char text[] = "abc";
  CHECK(driver.write(*a, text, 4));
  char got[4] = {};
  CHECK(driver.read(got, *a, 4));
  CHECK(std::string(got) == "abc");
  const auto beyond = driver.write(*a + 255, text, 4);
  REQUIRE(!beyond);
  CHECK(code(beyond.error()) == "PW1252");
}

TEST_CASE("host driver: a graph runs in any order that its edges allow", "[cuda]") {
  // Four bytes move through eight places; another chain beside them.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    HostDriver driver({.seed = seed, .capacity = std::int64_t{1} << 20});
    const Address at = driver.allocate(4096).value();
    RecordedGraph graph{"chain", {}};
    for (int chain = 0; chain < 2; ++chain) {
      for (Address i = 0; i < 8; ++i) {
        const Address from = at + 1024 * static_cast<Address>(chain) + 16 * i;
        graph.nodes.push_back(copy(bytes(from, 4), bytes(from + 16, 4)));
      }
    }
    order_nodes(graph);
    REQUIRE(driver.write(at, "left", 4));
    REQUIRE(driver.write(at + 1024, "side", 4));
    auto executable = driver.instantiate(graph);
    REQUIRE(executable);
    REQUIRE((*executable)->replay());
    char got[4];
    REQUIRE(driver.read(got, at + 128, 4));
    CHECK(std::string(got, 4) == "left");
    REQUIRE(driver.read(got, at + 1024 + 128, 4));
    CHECK(std::string(got, 4) == "side");
  }
}

TEST_CASE("host driver: a missing edge and memory that is gone are found", "[cuda]") {
  HostDriver driver;
  const Address a = driver.allocate(256).value(), b = driver.allocate(256).value();
  RecordedGraph graph{"two", {copy(bytes(a, 16), bytes(b, 16)), copy(bytes(b, 16), bytes(a, 16))}};
  auto unordered = driver.instantiate(graph);
  REQUIRE(!unordered);
  CHECK(code(unordered.error()) == "PW1251");
  order_nodes(graph);
  auto executable = driver.instantiate(graph);
  REQUIRE(executable);
  CHECK((*executable)->replay());
  driver.release(b);
  auto stale = (*executable)->replay();
  REQUIRE(!stale);
  CHECK(code(stale.error()) == "PW1252");
  auto nowhere = driver.instantiate(graph);
  REQUIRE(!nowhere);
  CHECK(code(nowhere.error()) == "PW1252");
}
