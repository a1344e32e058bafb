#include "graph/text/numbered_names.hpp"

#include <map>
#include <string>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "graph/context.hpp"
#include "tests/catch.hpp"

using namespace pw;

TEST_CASE("numbered names: each name has one number, whatever its digits are", "[graph][names]") {
  Random random(7);
  NumberedNames names;
  std::map<std::string, NameId> seen;
  const auto meet = [&](const std::string& name) {
    const NameId id = names.intern(name);
    const auto [it, fresh] = seen.emplace(name, id);
    CHECK(it->second == id);
    if (fresh) CHECK(id.index + 1 == seen.size());
  };
  for (const char* name : {"", "a", "0", "00", "7", "07", "a0", "a00", "a-0", "a2097151",
                           "a2097152", "a99999999999", "a1b2", "a01b2"})
    meet(name);
  // Numbers that are far from the others come first, then those between fill up.
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t number = random.below(random.below(4) == 0 ? 3'000'000 : 2'000);
    meet(fmt::format("{}{}{}", random.below(2) == 0 ? "l" : "mul_", number,
                     random.below(2) == 0 ? "" : "_w"));
  }
  CHECK(names.size() == seen.size());
  Context context;
  for (const auto& [name, id] : seen) {
    CHECK(names.text(id) == name);
    CHECK(names.intern(name) == id);
    if (!name.empty())
      CHECK(context.value_names.text(names.add_to(context.value_names, id)) == name);
  }
}
