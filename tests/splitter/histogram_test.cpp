#include "splitter/histogram.hpp"

#include "base/hash.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

using Steps = std::vector<std::pair<std::int64_t, std::int64_t>>;

Steps steps(const std::string& text) {
  auto read = read_histogram(text, "h");
  REQUIRE(read.has_value());
  return read->steps;
}
std::string place(const std::string& text) {
  const auto read = read_histogram(text, "h");
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().front().code == "PW0731");
  return read.error().front().place;
}

}  // namespace

TEST_CASE("histogram: text, CSV and JSON hold the same", "[splitter]") {
  const Steps expected{{1, 120}, {16, 7}};
  CHECK(steps("1 120\n16 7\n") == expected);
  CHECK(steps("# of last night\ntokens,count\r\n16,4\r\n1,120\r\n16,3\r\n") == expected);
  CHECK(steps("{\"1\": 120, \"16\": 7}") == expected);
  CHECK(steps(" {\"steps\": [[16, 4], [1, 120], [16, 3]]}") == expected);
  CHECK(steps("4\n4\n2\n") == Steps{{2, 1}, {4, 2}});
  CHECK(steps("4 0\n2 1") == Steps{{2, 1}});
}

TEST_CASE("histogram: a logged table among other lines", "[splitter]") {
  const std::string log =
      "INFO 11-21 engine ready | 3 workers\n"
      "INFO **CUDAGraph Stats:**\n"
      "INFO | Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode | Count |\n"
      "INFO |-----------------|---------------|--------------|--------------|-------|\n"
      "INFO | 6               | 8             | 2            | FULL         | 31    |\n"
      "INFO | 415             | 415           | 0            | NONE         | 1     |\n"
      "INFO something else\n"
      "INFO | Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode | Count |\n"
      "INFO | 6               | 8             | 2            | PIECEWISE    | 2     |\n";
  CHECK(steps(log) == Steps{{6, 33}, {415, 1}});
  CHECK(place("| Unpadded Tokens | Count |\n| 6 | many |\n") == "h:2");
  CHECK(place("| Unpadded Tokens | Count |\n| 6 | 1 | 2 |\n") == "h:2");
  CHECK(place("| Unpadded Tokens | Mode |\n| 6 | 1 |\n") == "h:1");
}

TEST_CASE("histogram: another file is refused with its location", "[splitter]") {
  CHECK(place("") == "h");
  CHECK(place("1 2\nx 3\n") == "h:2");
  CHECK(place("1 2 3\n") == "h:1");
  CHECK(place("0 3\n") == "h:1");
  CHECK(place("-4 3\n") == "h:1");
  CHECK(place("1.5 3\n") == "h:1");
  CHECK(place("1 nan\n") == "h:1");
  CHECK(place("1 1e300\n") == "h:1");
  CHECK(place("99999999 1\n") == "h:1");
  CHECK(place("7 0\n") == "h");
  CHECK(place("{\"1\": \"many\"}") == "h at /1");
  CHECK(place("{\"steps\": [[1, 2], [3]]}") == "h at /steps/1");
  CHECK(place("{}") == "h");
  CHECK_FALSE(read_histogram("{\"steps\": [[1, 2]", "h").has_value());
}

TEST_CASE("histogram: times of steps", "[splitter]") {
  const auto times = read_step_times("tokens seconds\n16 0.5\n1 0.25\n", "t");
  REQUIRE(times.has_value());
  CHECK(*times == std::vector<std::pair<std::int64_t, double>>{{1, 0.25}, {16, 0.5}});
  CHECK_FALSE(read_step_times("16 0.5\n16 0.4\n", "t").has_value());
  CHECK_FALSE(read_step_times("16\n", "t").has_value());
  CHECK_FALSE(read_step_times("16 -1\n", "t").has_value());
  CHECK_FALSE(read_step_times("16 inf\n", "t").has_value());
}

TEST_CASE("histogram: made-up traffic has a million steps over 1..512", "[splitter]") {
  for (const char* name : {"lognormal", "bimodal", "uniform"}) {
    const auto h = histogram_named(name);
    REQUIRE(h.has_value());
    CHECK(std::abs(h->total() - 1e6) < 300);
    CHECK(h->steps.front().first >= 1);
    CHECK(h->steps.back().first == 512);
  }
  CHECK_FALSE(histogram_named("normal").has_value());
}

TEST_CASE("histogram: damaged text never crashes", "[splitter]") {
  const std::string texts[] = {
      "tokens,count\n16,4\n1,120\n", "{\"1\": 120, \"16\": 7, \"steps\": [[16, 4], [1, 120]]}",
      "| Unpadded Tokens | Padded Tokens | Count |\n|---|---|---|\n| 6 | 8 | 31 |\n"};
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    std::string text = texts[random.below(3)];
    for (std::uint64_t edits = 1 + random.below(4); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = random.below(text.size());
      switch (random.below(3)) {
        case 0: text.erase(at, 1 + random.below(6)); break;
        case 1: text.insert(at, 1, static_cast<char>(random.below(256))); break;
        default: text[at] = "0123456789|,-.e\n{}[]\""[random.below(21)];
      }
    }
    const auto read = read_histogram(text, "h");
    INFO("seed " << seed);
    if (read) {
      CHECK_FALSE(read->steps.empty());
      for (const auto& [tokens, count] : read->steps) CHECK((tokens >= 1 && count >= 1));
    } else {
      CHECK_FALSE(read.error().empty());
    }
  }
}
