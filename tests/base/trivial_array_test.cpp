// TrivialArray compared with std::vector, over random operations.
#include "base/trivial_array.hpp"

#include <random>
#include <vector>

#include "tests/catch.hpp"

using pw::TrivialArray;

namespace {

struct Pair {
  std::uint32_t a = 0, b = 0;
  friend bool operator==(const Pair&, const Pair&) = default;
};

void require_equal(const TrivialArray<Pair>& array, const std::vector<Pair>& vector) {
  REQUIRE(array.size() == vector.size());
  REQUIRE(array.capacity() >= array.size());
  for (std::size_t i = 0; i < vector.size(); ++i) REQUIRE(array[i] == vector[i]);
}

}  // namespace

TEST_CASE("trivial array: holds what a vector holds, however it is grown and cut", "[base]") {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  TrivialArray<Pair> array;
  std::vector<Pair> vector;
  for (std::uint32_t step = 0; step < 4000; ++step) {
    switch (below(8)) {
      case 0: array.reserve(below(3000)); break;
      case 1: array.fit(below(3000)); break;
      case 2: {
        const std::size_t size = below(static_cast<std::uint32_t>(vector.size()) + 10);
        array.cut(size);
        vector.resize(std::min(size, vector.size()));
        break;
      }
      case 3: {
        const std::uint32_t count = below(200);
        Pair* const room = array.room_for(count + 5);
        for (std::uint32_t i = 0; i < count; ++i) vector.push_back(room[i] = {step, i});
        array.add(count);
        break;
      }
      case 4: {
        TrivialArray<Pair> copy(array), other;
        require_equal(copy, vector);
        other = std::move(copy);
        array = other;
        break;
      }
      default:
        for (std::uint32_t i = 0; i < 20; ++i) {
          array.push_back({i, step});
          vector.push_back({i, step});
        }
        if (below(4) == 0) {  // one of its own
          array.push_back(array[0]);
          vector.push_back(Pair(vector[0]));
        }
    }
    if (step % 50 == 0) require_equal(array, vector);
  }
  require_equal(array, vector);
  array.cut(0);
  array.fit(0);
  CHECK(array.capacity() == 0);
}

TEST_CASE("trivial array: a request that is too large is reported and changes nothing", "[base]") {
  TrivialArray<Pair> array;
  array.push_back({1, 2});
  CHECK_THROWS_AS(array.reserve(static_cast<std::size_t>(-1)), std::bad_alloc);
  CHECK_THROWS_AS(array.reserve(static_cast<std::size_t>(-1) / sizeof(Pair)), std::bad_alloc);
  REQUIRE(array.size() == 1);
  CHECK(array[0] == Pair{1, 2});
}
