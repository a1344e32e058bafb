// Zip archives: what is read, and that what lies about itself is refused.
#include "base/io/zip.hpp"

#include "tests/catch.hpp"
#include "tests/pt2/archives.hpp"

using namespace pw;
using namespace pw::test;

namespace {

std::string refused_entry(const Result<std::string>& result) {
  REQUIRE(!result);
  CHECK(result.error()[0].code == "PW0004");
  return result.error()[0].place + ": " + result.error()[0].message;
}

std::string refused_zip(const std::string& bytes) {
  const auto zip = Zip::open(bytes, "a.zip");
  REQUIRE(!zip);
  CHECK(zip.error()[0].code == "PW0004");
  return zip.error()[0].message;
}

std::string replaced(std::string bytes, const std::string& from, const std::string& to) {
  REQUIRE(from.size() == to.size());
  REQUIRE(bytes.find(from) != std::string::npos);
  for (std::size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + 1))
    bytes.replace(at, from.size(), to);
  return bytes;
}

}  // namespace

TEST_CASE("zip: stored and packed entries read back", "[zip]") {
  const std::string long_text(5000, 'q');
  const std::string bytes = zip_of({{"a/b", "hello"}, {"empty", ""}, {"c", long_text, true}});
  CHECK(looks_like_zip(bytes));
  CHECK(bytes.size() < long_text.size());
  const auto zip = Zip::open(bytes, "a.zip");
  REQUIRE(zip);
  REQUIRE(zip->entries().size() == 3);
  CHECK(zip->find("c")->size == 5000);
  CHECK(zip->find("d") == nullptr);
  CHECK(zip->read("a/b", 100).value() == "hello");
  CHECK(zip->read("empty", 0).value().empty());
  CHECK(zip->read("c", 5000).value() == long_text);
  CHECK(refused_entry(zip->read("c", 4999)) == "a.zip at c: it has 5000 bytes; the limit is 4999");
  CHECK(refused_entry(zip->read("d", 1)) == "a.zip at d: the entry does not exist");
}

TEST_CASE("zip: damage is found by the checksum", "[zip]") {
  const std::string bytes = replaced(zip_of({{"a", "hello world"}}), "hello", "jello");
  const auto zip = Zip::open(bytes, "a.zip");
  REQUIRE(zip);
  CHECK(refused_entry(zip->read("a", 100)).starts_with("a.zip at a: the entry is damaged"));
}

TEST_CASE("zip: damaged archives and other files are refused", "[zip]") {
  const std::string bytes = zip_of({{"first", "1"}, {"other", "2"}});
  CHECK(refused_zip("PK\x03\x04").find("this is not a readable zip archive") == 0);
  CHECK(Zip::open("", "a.zip").value().entries().empty());
  CHECK(refused_zip(bytes.substr(0, bytes.size() / 2)).find("this is not a readable zip archive") ==
        0);
  CHECK(refused_zip(replaced(bytes, "other", "first")) == "this entry is duplicated");
}

TEST_CASE("zip: an archive that unpacks to far more than it is, is not unpacked", "[zip]") {
  const std::string zeros(std::size_t{70} << 20, '\0');
  CHECK(refused_zip(zip_of({{"a", zeros, true}})) ==
        "the entries up to this one unpack to more than 16 times the size of the archive");
}

TEST_CASE("zip: no cut of an archive does worse than be refused", "[zip]") {
  const std::string bytes = zip_of(small_archive());
  for (std::size_t end = 0; end < bytes.size(); end += 7) {
    const std::string cut = bytes.substr(0, end);
    const auto zip = Zip::open(cut, "a.zip");
    CHECK((zip || zip.error()[0].code == "PW0004"));
  }
}
