#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "tests/catch.hpp"

using namespace pw;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "pw-output-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()));
    path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

mode_t mode_of(const fs::path& path) {
  struct stat info{};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

}  // namespace

TEST_CASE("file: a write replaces the target of a link, and leaves no other file", "[base]") {
  const Folder folder;
  fs::create_directory(folder.path / "inner");
  fs::create_symlink("inner/real", folder.path / "link");
  for (const char* text : {"first", "second"}) {
    REQUIRE(write_file((folder.path / "link").string(), text));
    CHECK(fs::is_symlink(folder.path / "link"));
    CHECK(text_of(folder.path / "inner/real") == text);
  }
  CHECK(std::distance(fs::directory_iterator(folder.path / "inner"), {}) == 1);
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 2);
}

TEST_CASE("file: a write keeps the mode of a file, and gives a new one the umask's", "[base]") {
  const Folder folder;
  const std::string path = (folder.path / "a").string();
  const mode_t before = ::umask(027);
  REQUIRE(write_file(path, "x"));
  CHECK(mode_of(path) == 0640);
  fs::permissions(path, fs::perms(0604));
  REQUIRE(write_file(path, "y"));
  CHECK(mode_of(path) == 0604);
  ::umask(before);
}

TEST_CASE("file: only regular files are replaced", "[base]") {
  const Folder folder;
  CHECK_FALSE(write_file(folder.path.string(), "x"));
  CHECK_FALSE(write_file((folder.path / "absent/a").string(), "x"));
  const std::string fifo = (folder.path / "fifo").string();
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const int fd = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(fd >= 0);
  REQUIRE(write_file(fifo, "through"));
  char bytes[16] = {};
  CHECK(::read(fd, bytes, sizeof bytes) == 7);
  CHECK(std::string(bytes) == "through");
  ::close(fd);
  CHECK(fs::is_fifo(fifo));
}

TEST_CASE("printable: nothing reaches a terminal but text", "[base]") {
  CHECK(printable("\x1b[31mred\x07 \x7f") == "\\x1b[31mred\\x07 \\x7f");
  CHECK(printable("a\nb\tc") == "a\\x0ab c");
  CHECK(printable_lines("a\nb\tc\r\n") == "a\nb\tc\\x0d\n");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\u{9b}31m");  // CSI as one character
  CHECK(printable("\x9b"
                  "31m") ==
        "\\x9b"
        "31m");  // and as a byte that is not UTF-8
  CHECK(printable("a\xe2\x80\xae"
                  "b") == "a\\u{202e}b");  // right-to-left override
  CHECK(printable("größe ≡ 日本 😀") == "größe ≡ 日本 😀");
}

TEST_CASE("printable: JSON stays JSON, and means the same", "[base]") {
  CHECK(printable_json("{\"a\": \"\x7f\xc2\x9b\xe2\x80\xae\"}\n") ==
        "{\"a\": \"\\u007f\\u009b\\u202e\"}\n");
  CHECK(printable_json("\"\x9b\"") == "\"\\ufffd\"");
}

TEST_CASE("utf8: only the shortest forms of characters are characters", "[base]") {
  CHECK(first_character("a").code == 'a');
  CHECK(first_character("\xc3\xa9").code == 0xE9);
  CHECK(first_character("\xe2\x89\xa1").code == 0x2261);
  CHECK(first_character("\xf0\x9f\x98\x80").code == 0x1F600);
  for (const char* bad : {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xc3", "\xc3(", "\xff"})
    CHECK(first_character(bad).length == 0);
}
