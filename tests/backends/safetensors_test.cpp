// Safetensors files: what reads back, what is refused and where, and that no header does worse; and
// which tensor an input gets.
#include "tensor/safetensors.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "base/hash.hpp"
#include "base/io/file.hpp"
#include "exec/named_tensors.hpp"
#include "exec/runner.hpp"
#include "tensor/numerics.hpp"
#include "tests/backends/graphs.hpp"

namespace {

using namespace pw;
using namespace pw::test;

std::string with_length(const std::string& header, const std::string& data = {}) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + header + data;
}

struct Refusal {
  std::string place, message;
};
Refusal refused(const std::string& bytes) {
  const auto header = parse_safetensors(bytes, "w.safetensors");
  REQUIRE(!header);
  CHECK(header.error()[0].code == "PW1271");
  return {header.error()[0].place, header.error()[0].message};
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& places) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     places);
}

/// A file of this content, gone afterwards.
struct File {
  explicit File(const std::string& content) {
    std::string name = (std::filesystem::temp_directory_path() / "pw-safetensors-XXXXXX").string();
    const int made = ::mkstemp(name.data());
    REQUIRE(made >= 0);
    ::close(made);
    path = name;
    REQUIRE(write_file(path, content));
  }
  File(const File&) = delete;
  ~File() { std::filesystem::remove(path); }
  std::string path;
};

}  // namespace

TEST_CASE("safetensors: what is written reads back, of every dtype", "[backends]") {
  std::vector<std::pair<std::string, TensorView>> all;
  std::vector<Tensor> kept;
  for (const DType dtype : {DType::b8, DType::u8, DType::i8, DType::i32, DType::i64, DType::f8e4m3,
                            DType::f8e5m2, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    kept.push_back(tensor(dtype, {3}, {1, 0, 1}));
    all.emplace_back("t " + std::string(name(dtype)), kept.back().view());
  }
  kept.push_back(tensor(DType::f32, {}, {7}));
  all.emplace_back("rank 0 \"quoted\"", kept.back().view());
  kept.push_back(tensor(DType::f32, {0, 4}, {}));
  all.emplace_back("empty", kept.back().view());
  const std::string text = safetensors_text(all);
  const File file(text);
  const auto opened = Safetensors::open(file.path);
  if (!opened) FAIL(opened.error()[0].message);
  CHECK(opened->tensors().size() == all.size());
  for (const auto& [name, view] : all) {
    INFO(name);
    const StoredTensor* stored = opened->find(name);
    REQUIRE(stored != nullptr);
    const Tensor read = opened->tensor(*stored).value();
    CHECK(read.dtype() == view.dtype);
    CHECK(read.extents() == view.extents);
    CHECK(std::memcmp(read.data(), view.data, view.bytes()) == 0);
  }
  CHECK(opened->find("absent") == nullptr);
  CHECK(parse_safetensors(text, "x")->data % 64 == 0);
}

TEST_CASE("safetensors: a tensor outlives its file's handle, and writing does not reach the file",
          "[backends]") {
  const Tensor x = tensor(DType::f32, {2}, {1, 2});
  const File file(safetensors_text({{"x", x.view()}}));
  Tensor read;
  {
    const auto opened = Safetensors::open(file.path);
    REQUIRE(opened);
    read = opened->tensor(*opened->find("x")).value();
  }
  store(DType::f32, read.data(), 0, 5);
  CHECK(values(read) == std::vector<double>{5, 2});
  const auto again = Safetensors::open(file.path);
  REQUIRE(again);
  CHECK(values(again->tensor(*again->find("x")).value()) == std::vector<double>{1, 2});
}

TEST_CASE("safetensors: a malformed header is named with its place", "[backends]") {
  CHECK(refused("").message.find("has 0 bytes") == 0);
  CHECK(refused("1234567").message.find("has 7 bytes") == 0);
  CHECK(refused(std::string(8, '\xff')).message.find("the limit is 100000000") !=
        std::string::npos);
  CHECK(refused(with_length("{}").substr(0, 9)).message ==
        "the header of 2 bytes extends beyond the "
        "file, which has 9");
  CHECK(refused(with_length("{\"a\": ")).message.find("is not JSON, at its byte") !=
        std::string::npos);
  CHECK(refused(with_length("\xff\xfe")).message.find("is not JSON") != std::string::npos);
  CHECK(refused(with_length("[1]")).message == "the header is not a JSON object");
  CHECK(refused(with_length("{\"a\":" + std::string(50000, '['))).message.find("not JSON") !=
        std::string::npos);
  CHECK(refused(with_length("{\"a\":[[[[]]]]}")).message == "the header is nested deeper than 3");
  CHECK(refused(with_length("{\"__metadata__\": {\"a\": 1}}")).place ==
        "w.safetensors at __metadata__");
  CHECK(refused(with_length("{\"a\": 1}")).message == "an entry must be an object");
  CHECK(refused(with_length(R"({"a":{"dtype":"F32","shape":[1]}})")).message ==
        "`data_offsets` is missing");
  CHECK(refused(with_length("{" + entry("a", "F31", "[1]", "[0,4]") + "}", "1234")).message ==
        "unknown dtype `F31`");
  const auto one = [](const std::string& shape, const std::string& places) {
    return with_length("{" + entry("a", "F32", shape, places) + "}", "12345678");
  };
  CHECK(parse_safetensors(one("[2]", "[0,8]"), "w"));
  CHECK(refused(one("[2]", "[0,8]") + "x").message == "no tensor has the last 1 bytes");
  CHECK(refused(one("2", "[0,8]")).message == "the shape is not a list");
  CHECK(refused(one("[-2]", "[0,8]")).message.find("invalid extent: -2") != std::string::npos);
  CHECK(refused(one("[2.0]", "[0,8]")).message.find("invalid extent: 2.0") != std::string::npos);
  CHECK(refused(one("[4611686018427387904,4611686018427387904]", "[0,8]"))
            .message.find("invalid extent") != std::string::npos);
  CHECK(refused(one("[4294967296,4294967296]", "[0,8]")).message ==
        "the tensor is larger than any file");
  CHECK(refused(one("[2]", "[0,9]")).message.find("bytes end at 9") != std::string::npos);
  CHECK(refused(one("[2]", "[8,0]")).message.find("a beginning and an end") != std::string::npos);
  CHECK(refused(one("[2]", "[0]")).message.find("a beginning and an end") != std::string::npos);
  CHECK(refused(one("[2]", "[0,4]")).message == "it has 4 bytes, but its shape requires 8");
  CHECK(refused(one("[1]", "[4,8]")).message == "no tensor has the bytes from 0 to 4 before it");
  const Refusal overlap = refused(with_length(
      "{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("b", "F32", "[1]", "[4,8]") + "}",
      "12345678"));
  CHECK(overlap.place == "w.safetensors at b");
  CHECK(overlap.message == "its bytes overlap those of a");
  CHECK(refused(with_length("{" + entry("a", "F32", "[2]", "[0,8]") + "," +
                                entry("a", "F32", "[2]", "[0,8]") + "}",
                            "12345678"))
            .message == "duplicate name");
  const auto folder = Safetensors::open("/");
  REQUIRE(!folder);
  CHECK(folder.error()[0].code == "PW1270");
}

TEST_CASE("safetensors: mutated files give tensors within the file or a diagnostic",
          "[backends][fuzz]") {
  const Tensor x = tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}),
               y = tensor(DType::i64, {2}, {1, 2}), z = tensor(DType::bf16, {5}, {1, 2, 3, 4, 5});
  const std::string base =
      safetensors_text({{"layers.0.x", x.view()}, {"y", y.view()}, {"zz", z.view()}});
  const std::string pieces[] = {
      "[",  "]",    "{",     "}",    "\"",  ",",     ":",    "null",
      "-1", "1e30", "\\u00", "\xff", "F32", "shape", "0,24", "99999999999999999999"};
  std::size_t good = 0;
  for (std::uint64_t seed = 1; seed <= 6000; ++seed) {
    Random random(seed);
    std::string text = base;
    // Mostly in the header, and its length is kept right in half of them.
    for (std::uint64_t k = 0, n = 1 + random.below(3); k < n; ++k) {
      const std::size_t at =
          random.below(5) == 0 ? random.below(text.size()) : 8 + random.below(text.size() - 8 - 50);
      switch (random.below(4)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.erase(at, random.below(6)); break;
        case 2: text.insert(at, pieces[random.below(std::size(pieces))]); break;
        default: text[at] = static_cast<char>('0' + random.below(10));
      }
    }
    if (random.below(2) == 0) {
      const std::size_t end = text.find("   ");
      if (end != std::string::npos) text = with_length(text.substr(8, end - 8), text.substr(end));
    }
    INFO("seed " << seed);
    const auto header = parse_safetensors(text, "w");
    if (!header) {
      CHECK_FALSE(header.error().empty());
      CHECK(header.error()[0].code == "PW1271");
      continue;
    }
    ++good;
    std::uint64_t bytes = 0;
    for (const StoredTensor& t : header->tensors) {
      CHECK(header->data + t.end <= text.size());
      bytes += t.end - t.begin;
    }
    CHECK(header->data + bytes == text.size());
  }
  CHECK(good > 0);
  CHECK(good < 6000);
}

TEST_CASE("named tensors: keys with digits, exact ones first", "[backends]") {
  const auto map = TensorMap::parse(
      R"({"l{i}_w": "layers.{i}.weight", "l0_w": "first", "e{i}_{j}": "x.{j}.{i}", "s{i}_{i}": "same.{i}"})",
      "m.json");
  REQUIRE(map);
  CHECK(map->tensor_of("l0_w") == "first");
  CHECK(map->tensor_of("l12_w") == "layers.12.weight");
  CHECK(map->tensor_of("e1_23") == "x.23.1");
  CHECK(map->tensor_of("s4_4") == "same.4");
  CHECK(!map->tensor_of("s4_5"));
  CHECK(!map->tensor_of("l_w"));
  CHECK(!map->tensor_of("l1_ww"));
  CHECK(map->unused({"l0_w", "l1_w", "e0_0"}) == std::vector<std::string>{"s{i}_{i}"});
  for (const char* bad : {R"({"a{": "b"})", R"({"a{}": "b"})", R"({"a}": "b"})", R"({"a": "b{i}"})",
                          R"({"a": 1})", R"({"a{i{j}}": "b"})"}) {
    INFO(bad);
    const auto parsed = TensorMap::parse(bad, "m.json");
    REQUIRE(!parsed);
    CHECK(parsed.error()[0].code == "PW1273");
    CHECK(parsed.error()[0].place.find("m.json at /a") == 0);
  }
  CHECK(!TensorMap::parse("[]", "m.json"));
  CHECK(!TensorMap::parse("", "m.json"));
}

TEST_CASE("named tensors: inputs get tensors of their dtype and extents, or the reason is reported",
          "[backends]") {
  const Graph graph = graph_of(
      "symbol n in 1..64 tokens  in x: f32[n, 2]  in weight w0: f32[2], w1: f32[2]  y = x * w0  z "
      "= "
      "y * w1  out z");
  const Tensor a = tensor(DType::f32, {2}, {3, 4}), b = tensor(DType::f32, {2}, {5, 6}),
               x = tensor(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6}),
               half = tensor(DType::f16, {2}, {1, 2}), three = tensor(DType::f32, {3}, {1, 2, 3});
  const auto give = [&](std::vector<std::pair<std::string, TensorView>> tensors,
                        const std::string& map, Weights& weights) {
    const File file(safetensors_text(std::move(tensors)));
    return give_tensors(graph, Safetensors::open(file.path).value(),
                        TensorMap::parse(map, "m.json").value(), weights);
  };
  Weights weights(graph, 1);
  const auto given = give({{"w.0", a.view()}, {"w.1", b.view()}, {"more", b.view()}},
                          R"({"w{i}": "w.{i}"})", weights);
  if (!given) FAIL(given.error()[0].message);
  CHECK(given->inputs == 2);
  CHECK(given->of_seed == 1);
  CHECK(given->unused == std::vector<std::string>{"more"});
  CHECK(values(weights.tensor("w1", {}, one_sequence(3)).value()) == std::vector<double>{5, 6});
  const auto refused = [&](std::vector<std::pair<std::string, TensorView>> tensors,
                           const std::string& map = "{}") {
    Weights fresh(graph, 1);
    const auto done = give(std::move(tensors), map, fresh);
    REQUIRE(!done);
    return fmt::format("{} {}: {} {}", done.error()[0].code, done.error()[0].place,
                       done.error()[0].message, done.error()[0].help);
  };
  CHECK(refused({{"w0", a.view()}, {"w_1", b.view()}}).find("PW1272 input w1: ") == 0);
  CHECK(refused({{"w0", a.view()}, {"w_1", b.view()}}).find("did you mean `w_1`?") !=
        std::string::npos);
  CHECK(refused({{"w0", half.view()}, {"w1", b.view()}}) ==
        "PW1272 input w0: it is f32[2], but the tensor w0 is F16 ");
  CHECK(refused({{"w0", three.view()}, {"w1", b.view()}}) ==
        "PW1272 input w0: it is f32[2], but the tensor w0 is [3] ");
  CHECK(refused({{"w0", a.view()}, {"w1", b.view()}}, R"({"v{i}": "w{i}"})")
            .find("PW1273 the map at v{i}: no input of the graph has this name") == 0);
  // Contents of tokens: in a step of as many.
  REQUIRE(give({{"w0", a.view()}, {"w1", b.view()}, {"x", x.view()}}, "{}", weights));
  CHECK(values(weights.tensor("x", {{"n", 3}}, one_sequence(3)).value()) ==
        std::vector<double>{1, 2, 3, 4, 5, 6});
  const auto other = weights.tensor("x", {{"n", 4}}, one_sequence(4));
  REQUIRE(!other);
  CHECK(other.error()[0].code == "PW1272");
}
