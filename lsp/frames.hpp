// The framing of the language server protocol: `Content-Length: N`, an empty line, N bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace pw::cli {

inline constexpr std::size_t kMostFrameBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostHeaderBytes = 4096;

struct Frame {
  std::string content;
  std::string problem;  ///< what is wrong with the header; empty: nothing
};

/// Cuts a stream into frames. Behind a header that cannot be read it goes on at the next one, so
/// that one bad frame costs no other; whatever the bytes are, it holds less than one frame.
class FrameReader {
 public:
  void feed(std::string_view bytes);
  /// The next frame that is whole, or a problem, once each.
  std::optional<Frame> next();

 private:
  std::optional<Frame> header();
  std::optional<Frame> refuse(std::string problem, std::size_t from);

  std::string buffer_;
  std::size_t skip_ = 0;               // bytes of a refused content still to come
  std::optional<std::size_t> length_;  // of the content that comes
  bool lost_ = false;                  // looking for the next header, which was said
};

[[nodiscard]] std::string framed(std::string_view content);

}  // namespace pw::cli
