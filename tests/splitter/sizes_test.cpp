#include "splitter/sizes.hpp"

#include "splitter/plan.hpp"
#include "tests/catch.hpp"
#include "tests/splitter/graphs.hpp"

using namespace pw;
using Sizes = std::vector<std::int64_t>;

TEST_CASE("sizes: the defaults have 35, 51 and 83 members", "[splitter]") {
  CHECK(default_capture_sizes({.max_tokens = 8192, .max_requests = 128, .cap = 1024}).size() == 35);
  CHECK(default_capture_sizes({.max_tokens = 8192, .max_requests = 256, .cap = 1024}).size() == 51);
  CHECK(default_capture_sizes({.max_tokens = 8192, .max_requests = 512, .cap = 1024}).size() == 83);
  CHECK(default_capture_sizes({.max_tokens = 8192, .max_requests = 1 << 20, .cap = 512}).back() ==
        512);
}

TEST_CASE("sizes: the token maximum is one where it is not above M", "[splitter]") {
  CHECK(default_capture_sizes({.max_tokens = 100, .max_requests = 256, .cap = 512}).back() == 100);
  CHECK(default_capture_sizes({.max_tokens = 3, .max_requests = 256, .cap = 512}) ==
        std::vector<std::int64_t>{1, 2, 3});
  CHECK(default_capture_sizes({.max_tokens = 8192, .max_requests = 10, .cap = 512}).back() == 16);
}

TEST_CASE("sizes: every count pads to the next size", "[splitter]") {
  const CaptureSizes c = make_capture_sizes({8, 1, 4, 2, 2});
  CHECK(c.pad(3) == 4);
  CHECK(c.pad(5) == 8);
  CHECK(c.pad(8) == 8);
  CHECK(c.pad(0) == 0);
  CHECK(c.pad(9) == -1);
  CHECK(c.pad(-1) == -1);
  CHECK(make_capture_sizes({}).pad(1) == -1);
  const CaptureSizes d = make_capture_sizes(
      default_capture_sizes({.max_tokens = 8192, .max_requests = 256, .cap = 512}));
  CHECK(d.pad(7) == 8);
  CHECK(d.pad(300) == 304);
  CHECK(d.pad(513) == -1);
  for (const std::int64_t s : d.sizes) CHECK(d.pad(s) == s);
}

TEST_CASE("ranges: end points 8 and 32 with a maximum of 8192", "[splitter]") {
  const auto ranges = make_ranges({32, 8, 8}, 8192);
  REQUIRE(ranges.size() == 3);
  CHECK((ranges[0].begin == 1 && ranges[0].end == 8));
  CHECK((ranges[1].begin == 9 && ranges[1].end == 32));
  CHECK((ranges[2].begin == 33 && ranges[2].end == 8192));
}

TEST_CASE("sizes: with speculative tokens a decode of all requests still fits", "[splitter]") {
  // M = min(requests · (1 + k) · 2, cap)
  CHECK(default_capture_sizes({.max_requests = 10, .speculative_tokens = 3}).back() == 80);
  CHECK(default_capture_sizes({.max_requests = 256, .speculative_tokens = 3, .cap = 1024}).back() ==
        1024);
  const auto three = default_capture_sizes({.max_requests = 16, .speculative_tokens = 2});
  CHECK(three.front() == 3);
  CHECK(three.back() == 96);
  for (const std::int64_t s : three) CHECK(s % 3 == 0);
  const auto both =
      default_capture_sizes({.speculative_tokens = 2, .sequence_parallel = 4, .cap = 200});
  for (const std::int64_t s : both) CHECK(s % 12 == 0);
  CHECK(both.front() == 12);
  CHECK(both.back() == 192);
}

TEST_CASE("sizes: extreme options do not overflow", "[splitter]") {
  const std::int64_t large = std::int64_t{1} << 61;
  CHECK(default_capture_sizes({.max_tokens = large, .max_requests = large}).size() == 51);
  CHECK(default_capture_sizes({.max_requests = 1, .cap = 1}) == Sizes{1});
  CHECK(default_capture_sizes({.max_tokens = 2, .sequence_parallel = 4}).empty());
}

TEST_CASE("sizes: what is dropped is named", "[splitter]") {
  const KeptSizes kept = keep_multiples({15, 4, 1, 2, 2}, 2, "capture sizes");
  CHECK(kept.sizes == Sizes{2, 4});
  CHECK(kept.dropped == "capture sizes 1, 15 are dropped: no multiples of 2");
  CHECK(keep_multiples({3}, 1, "capture sizes").dropped.empty());
}

namespace {

Result<Plan> toy_plan(const PlanOptions& options) {
  pw::test::Builder b = pw::test::toy();
  return make_plan(b.cut({"attention"}), b.graph, options);
}

}  // namespace

TEST_CASE("sizes: a plan states which of the requested sizes it leaves out", "[splitter]") {
  const auto plan = toy_plan({.capture_sizes = {1, 2, 4, 15}, .sequence_parallel = 2});
  REQUIRE(plan.has_value());
  CHECK(plan->capture.sizes == Sizes{2, 4});
  CHECK(plan->notes ==
        std::vector<std::string>{"capture sizes 1, 15 are dropped: no multiples of 2"});
  const auto decode = toy_plan({.capture_sizes = {4, 6, 8}, .speculative_tokens = 3});
  REQUIRE(decode.has_value());
  CHECK(decode->capture.sizes == Sizes{4, 8});
  const auto none = toy_plan({.capture_sizes = {1, 3}, .sequence_parallel = 2});
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().front().code == "PW0726");
}

TEST_CASE("ranges: three ranges and three exact sizes are six compilations", "[splitter]") {
  const auto plan = toy_plan({.range_ends = {8, 32}, .compile_sizes = {128, 16, 64, 16}});
  REQUIRE(plan.has_value());
  CHECK(plan->compilations() == 6);
  CHECK(plan->compile_sizes == Sizes{16, 64, 128});
  const auto compiled = [&](std::int64_t rows) {
    const Range r = compiled_for(*plan, rows);
    return std::pair(r.begin, r.end);
  };
  CHECK(compiled(8) == std::pair<std::int64_t, std::int64_t>(1, 8));
  CHECK(compiled(9) == std::pair<std::int64_t, std::int64_t>(9, 32));
  CHECK(compiled(16) == std::pair<std::int64_t, std::int64_t>(16, 16));
  CHECK(compiled(129) == std::pair<std::int64_t, std::int64_t>(33, 8192));
  CHECK_FALSE(toy_plan({.compile_sizes = {9000}}).has_value());
}

TEST_CASE("ranges: those of a part of the token counts begin where it does", "[splitter]") {
  const auto ranges = make_ranges({8, 32, 300}, 2048, 257);
  REQUIRE(ranges.size() == 2);
  CHECK((ranges[0].begin == 257 && ranges[0].end == 300));
  CHECK((ranges[1].begin == 301 && ranges[1].end == 2048));
}
