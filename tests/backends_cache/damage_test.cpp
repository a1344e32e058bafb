// Damaged files: any changed bit is detected.
#include <fstream>

#include "base/hash.hpp"
#include "base/io/file.hpp"
#include "codegen/cache/object.hpp"
#include "tests/backends_cache/folders.hpp"

namespace {

using namespace pw;
using namespace pw::test;

void write_raw(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void fill(CompileCache& cache, int objects) {
  for (int i = 0; i < objects; ++i) {
    auto got =
        cache.get("test", parts_of(i), [&]() -> Result<std::string> { return object_of(i); });
    REQUIRE(got);
    CHECK(*got == object_of(i));
  }
}

}  // namespace

TEST_CASE("cache: every single flipped bit of an object is found", "[cache]") {
  const std::string key = key_of(1), payload("the bytes\0of an object\n", 23);
  const std::string file = seal_object("test", key, payload);
  REQUIRE(open_object(file, key));
  CHECK(open_object(file, key)->payload == payload);
  CHECK(open_object(file, key)->kind == "test");
  CHECK(!open_object(file, key_of(2)));
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    if (open_object(flipped, key)) FAIL("bit " << bit);
  }
  for (std::size_t length = 0; length < file.size(); ++length) {
    if (open_object(file.substr(0, length), key)) FAIL("cut to " << length);
  }
  CHECK(!open_object(file + "x", key));
}

TEST_CASE("cache: a damaged object is thrown away, counted and made anew", "[cache]") {
  const PrivateFolder folder;
  constexpr int kObjects = 20;
  {
    CompileCache cache({folder.path(), ""});
    fill(cache, kObjects);
  }
  Random random(7);
  const auto files = files_of(folder.path() + "/objects");
  REQUIRE(files.size() == kObjects);
  for (const std::string& path : files) {
    std::string bytes = read_file(path).value();
    const std::uint64_t bit = random.below(bytes.size() * 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    write_raw(path, bytes);
  }
  {
    CompileCache cache({folder.path(), ""});
    fill(cache, kObjects);
    CHECK(cache.counts().evicted == kObjects);
    CHECK(cache.counts().made == kObjects);
  }
  CompileCache cache({folder.path(), ""});
  CHECK(cache.inspect(false).bad == 0);
  CHECK(cache.inspect(false).kinds.at("test").objects == kObjects);
  CHECK(cache.totals().evicted == kObjects);
}

TEST_CASE("cache: verify throws damaged objects and leftovers away, and nothing else", "[cache]") {
  const PrivateFolder folder;
  CompileCache cache({folder.path(), ""});
  fill(cache, 4);
  const auto files = files_of(folder.path() + "/objects");
  write_raw(files[0], "");
  write_raw(files[1], read_file(files[2]).value());  // the object of another key
  const std::string beside = std::filesystem::path(files[3]).parent_path();
  write_raw(beside + "/.tmp-999999999-1", "half");
  write_raw(beside + "/.tmp-" + std::to_string(::getpid()) + "-77", "being written");
  const CacheContents found = cache.inspect(true);
  CHECK(found.bad == 2);
  CHECK(found.leftovers == 1);
  CHECK(found.kinds.at("test").objects == 2);
  CHECK(files_of(folder.path() + "/objects").size() == 3);
  CHECK(cache.inspect(true).bad == 0);
}
