// The compile cache alone: what is found, what is built, which folders are refused.
#include <csignal>
#include <fstream>

#include <sys/resource.h>
#include <sys/stat.h>

#include "codegen/cache/folder.hpp"
#include "tests/backends_cache/folders.hpp"

namespace {

using namespace pw;
using namespace pw::test;
namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

std::string get(CompileCache& cache, int i) {
  auto got = cache.get("test", parts_of(i), [&]() -> Result<std::string> { return object_of(i); });
  return got ? *got : "";
}

mode_t mode_of(const std::string& path) {
  struct stat info{};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 0777;
}

}  // namespace

TEST_CASE("cache: the digest is SHA-256, and parts do not run together", "[cache]") {
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(KeyParts().add("a", "bc").digest() != KeyParts().add("ab", "c").digest());
  CHECK(KeyParts().add("a", "1").add("b", "2").digest() != KeyParts().add("a", "11:b1:2").digest());
}

TEST_CASE("cache: an object is made once, then found, also by the next process", "[cache]") {
  const PrivateFolder folder;
  const std::string path = folder.path() + "/cache";
  for (int round = 0; round < 2; ++round) {
    CompileCache cache({path, ""});
    CHECK(cache.problem() == "");
    for (int i = 0; i < 5; ++i) CHECK(get(cache, i) == object_of(i));
    CHECK(cache.counts().made == (round == 0 ? 5 : 0));
    CHECK(cache.counts().found == (round == 0 ? 0 : 5));
  }
  CHECK(mode_of(path) == 0700);
  CompileCache cache({path, ""});
  CHECK(cache.totals().made == 5);
  CHECK(cache.totals().found == 5);
  CHECK(cache.inspect(false).kinds.at("test").objects == 5);
  CHECK(cache.clear() == 5);
  CHECK(files_of(path).empty());
  CHECK(cache.totals().made == 0);
}

TEST_CASE("cache: an error is returned and not kept", "[cache]") {
  const PrivateFolder folder;
  CompileCache cache({folder.path(), ""});
  auto failed = cache.get("test", parts_of(1), []() -> Result<std::string> {
    return fail(error_in("maker", "PW1223", "no"));
  });
  CHECK(!failed);
  CHECK(cache.counts().made == 0);
  CHECK(get(cache, 1) == object_of(1));
  CHECK(cache.counts().made == 1);
}

TEST_CASE("cache: below the user's folder is one that is only read", "[cache]") {
  const PrivateFolder folder;
  const std::string shared = folder.path() + "/shared", own = folder.path() + "/own";
  {
    CompileCache filling({shared, ""});
    get(filling, 1);
  }
  const auto before = files_of(shared);
  CompileCache cache({own, shared});
  CHECK(get(cache, 1) == object_of(1));
  CHECK(cache.counts().found == 1);
  CHECK(get(cache, 2) == object_of(2));
  CHECK(files_of(shared) == before);
  // A damaged object there is skipped and not removed.
  const auto bad = files_of(shared + "/objects").front();
  std::ofstream(bad, std::ios::app) << "x";
  CompileCache again({own, shared});
  CHECK(get(again, 1) == object_of(1));
  CHECK(again.counts().evicted == 1);
  CHECK(again.counts().made == 1);
  CHECK(fs::exists(bad));
  REQUIRE(::chmod(shared.c_str(), 0777) == 0);
  const CompileCache open({own, shared});
  CHECK(open.problem().find("others can write to it") != std::string::npos);
}

TEST_CASE("cache: a folder that others can write to, and one of somebody else, is refused",
          "[cache]") {
  const PrivateFolder folder;
  const std::string path = folder.path() + "/cache";
  fs::create_directory(path);
  REQUIRE(::chmod(path.c_str(), 0770) == 0);
  CompileCache open({path, ""});
  CHECK(open.folder().empty());
  CHECK(open.problem().find("others can write to it (mode 770)") != std::string::npos);
  CHECK(get(open, 1) == object_of(1));  // it is built anyway
  CHECK(open.counts().made == 1);
  CHECK(files_of(path).empty());

  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  const CompileCache readable({path, ""});
  CHECK(readable.problem() == "");
  CHECK(mode_of(path) == 0700);

  std::string foreign = "/";
  if (::geteuid() == 0) {
    foreign = path;
    REQUIRE(::chown(path.c_str(), kNobody, kNobody) == 0);
  }
  const auto refused = take_private_folder(foreign);
  REQUIRE(!refused);
  CHECK(refused.error().front().code == "PW1230");
  CHECK(refused.error().front().message.find("it belongs to user") != std::string::npos);
  CompileCache none({foreign, ""});
  CHECK(none.folder().empty());
  CHECK(get(none, 2) == object_of(2));
}

TEST_CASE("cache: a file in the place of the folder is refused", "[cache]") {
  const PrivateFolder folder;
  const std::string path = folder.path() + "/cache";
  std::ofstream(path) << "x";
  const CompileCache cache({path, ""});
  CHECK(cache.problem().find("it is not a folder") != std::string::npos);
}

TEST_CASE("cache: a folder that cannot be written to gives what it has", "[cache]") {
  const PrivateFolder folder;
  const std::string path = folder.path() + "/cache";
  {
    CompileCache cache({path, ""});
    get(cache, 1);
  }
  const bool root = ::geteuid() == 0;
  std::vector<std::string> folders{path};
  if (root) {  // a user who may write anywhere would test nothing, so the child changes its user
    REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
    REQUIRE(::chown(path.c_str(), kNobody, kNobody) == 0);
  }
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (root) REQUIRE(::chown(entry.path().c_str(), kNobody, kNobody) == 0);
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  for (const std::string& one : folders) REQUIRE(::chmod(one.c_str(), 0500) == 0);
  CHECK(in_child([&] {
          if (root && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) return 1;
          CompileCache cache({path, ""});
          if (get(cache, 1) != object_of(1) || cache.counts().found != 1) return 2;
          if (get(cache, 2) != object_of(2) || cache.counts().unwritten != 1) return 3;
          return cache.problem().find("cannot be written to") == std::string::npos ? 4 : 0;
        }) == 0);
  for (const std::string& one : folders) ::chmod(one.c_str(), 0700);
}

TEST_CASE("cache: a disk without room loses nothing but the objects that do not fit", "[cache]") {
  const PrivateFolder folder;
  const std::string path = folder.path() + "/cache";
  CHECK(in_child([&] {
          ::signal(SIGXFSZ, SIG_IGN);
          const rlimit limit{1400, 1400};  // of a file: object 0 fits, the others do not
          if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
          CompileCache cache({path, ""});
          for (int i : {0, 20, 30}) {
            if (get(cache, i) != object_of(i)) return 2;
          }
          if (cache.counts().unwritten != 2 || cache.counts().made != 3) return 3;
          return cache.problem().find("cannot be written to") == std::string::npos ? 4 : 0;
        }) == 0);
  CHECK(files_of(path + "/objects").size() == 1);
  CompileCache cache({path, ""});
  CHECK(get(cache, 0) == object_of(0));
  CHECK(cache.counts().found == 1);
}

TEST_CASE("cache: an object that its user refuses is thrown away, and made again", "[cache]") {
  const PrivateFolder folder;
  CompileCache cache({folder.path(), ""});
  int made = 0;
  const auto make = [&]() -> Result<std::string> { return "object " + std::to_string(++made); };
  const auto not_first = [](const std::string& bytes) { return bytes != "object 1"; };
  CHECK(cache.get("test", parts_of(1), make).value() == "object 1");
  CHECK(cache.get("test", parts_of(1), make, not_first).value() == "object 2");
  CHECK(cache.counts().evicted == 1);
  CHECK(cache.get("test", parts_of(1), make, not_first).value() == "object 2");
  const auto none = [](const std::string&) { return false; };
  CHECK(cache.get("test", parts_of(2), make, none).value() == "object 3");  // but not kept
  CHECK(cache.get("test", parts_of(2), make).value() == "object 4");
}

TEST_CASE("cache: a name leads to the key that was remembered last", "[cache]") {
  const PrivateFolder folder;
  {
    CompileCache cache({folder.path(), ""});
    CHECK(cache.recall(key_of(1)).empty());
    cache.remember(key_of(1), key_of(2));
    cache.remember(key_of(1), key_of(3));
  }
  CompileCache cache({folder.path(), ""});
  CHECK(cache.recall(key_of(1)) == key_of(3));
  CHECK(cache.inspect(false).kinds.empty());  // it is not an object
  cache.clear();
  CHECK(cache.recall(key_of(1)).empty());
}
