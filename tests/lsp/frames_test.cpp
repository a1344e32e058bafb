// Frames are reassembled from any stream of bytes.
#include "lsp/frames.hpp"

#include <vector>

#include "base/hash.hpp"
#include "tests/catch.hpp"

namespace pw::cli {
namespace {

/// Calls `next()` until nothing is left; more calls than bytes would mean an endless loop.
std::vector<Frame> drained(FrameReader& frames, std::size_t bytes) {
  std::vector<Frame> out;
  while (auto frame = frames.next()) {
    out.push_back(std::move(*frame));
    REQUIRE(out.size() <= bytes + 1);
  }
  return out;
}

std::vector<Frame> all_of(const std::string& stream) {
  FrameReader frames;
  frames.feed(stream);
  return drained(frames, stream.size());
}

TEST_CASE("frames: a stream cut anywhere holds the same messages", "[lsp]") {
  const std::string stream = framed("{}") + "content-type: x\r\nCONTENT-LENGTH:  5 \r\n\r\nhello" +
                             framed("") + framed("\r\n\r\nContent-Length: 3\r\n\r\n");
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    FrameReader frames;
    frames.feed(stream.substr(0, cut));
    std::vector<Frame> found = drained(frames, stream.size());
    frames.feed(stream.substr(cut));
    for (Frame& frame : drained(frames, stream.size())) found.push_back(std::move(frame));
    REQUIRE(found.size() == 4);
    CHECK(found[0].content == "{}");
    CHECK(found[1].content == "hello");
    CHECK(found[2].content.empty());
    CHECK(found[3].content == "\r\n\r\nContent-Length: 3\r\n\r\n");
    for (const Frame& frame : found) CHECK(frame.problem.empty());
  }
}

TEST_CASE("frames: a header that cannot be read costs no other message", "[lsp]") {
  for (const std::string& bad :
       {std::string("Content-Length: many\r\n\r\n"), std::string("Content-Length: -1\r\n\r\n"),
        std::string("Content-Length: 99999999999999999999\r\n\r\n"), std::string("garbage\r\n\r\n"),
        std::string("no colon\r\nContent-Length 4\r\n\r\n"), std::string(9000, 'x')}) {
    const std::vector<Frame> found = all_of(framed("a") + bad + framed("b"));
    INFO(bad.substr(0, 40));
    REQUIRE(found.size() >= 3);
    CHECK(found.front().content == "a");
    for (std::size_t i = 1; i + 1 < found.size(); ++i) CHECK_FALSE(found[i].problem.empty());
    CHECK(found.back().content == "b");
  }
}

TEST_CASE("frames: a message that is too large is passed over, not held", "[lsp]") {
  FrameReader frames;
  frames.feed("Content-Length: 200000000\r\n\r\n");
  std::vector<Frame> found = drained(frames, 100);
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].problem.empty());
  const std::string block(1000000, 'y');
  for (int i = 0; i < 200; ++i) frames.feed(block);
  CHECK_FALSE(frames.next());
  frames.feed(framed("after"));
  const std::optional<Frame> after = frames.next();
  REQUIRE(after);
  CHECK(after->content == "after");
}

TEST_CASE("frames: any bytes end in finitely many frames, and a good one is still read", "[lsp]") {
  Random random(5);
  const std::string good = framed(R"({"jsonrpc":"2.0","method":"exit"})");
  const std::vector<std::string> parts{
      "Content-Length: ",         "\r\n", "\r\n\r\n", "12", "0", ":", "{}",
      "content-length:3\r\n\r\n", "\xff", "\n",       "-",  " ", good};
  std::size_t tried = 0;
  while (tried < 5000) {
    std::string stream;
    for (std::uint64_t n = random.below(12); n > 0; --n)
      stream += parts[random.below(parts.size())];
    if (stream.find("1212") != std::string::npos || stream.find("120") != std::string::npos)
      continue;  // the awaited body has at most 999 bytes
    ++tried;
    FrameReader frames;
    std::size_t at = 0;
    while (at < stream.size()) {
      const std::size_t size = 1 + random.below(9);
      frames.feed(std::string_view(stream).substr(at, size));
      drained(frames, stream.size());
      at += size;
    }
    // Ends a pending header, and fills the body that it may announce.
    frames.feed("\r\n\r\n" + std::string(2000, ' ') + "\r\n\r\n");
    drained(frames, stream.size() + 3000);
    frames.feed(good);
    const std::vector<Frame> last = drained(frames, stream.size() + 3000);
    REQUIRE_FALSE(last.empty());
    INFO(stream);
    REQUIRE(last.back().content == R"({"jsonrpc":"2.0","method":"exit"})");
  }
}

}  // namespace
}  // namespace pw::cli
