// Frames of the language server protocol: `Content-Length: N`, an empty line, N bytes.
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
  std::string problem;  ///< error in the header; empty if valid
};

/// Splits a stream into frames. After an invalid header it resynchronizes at the next one, so a bad
/// frame affects no other. Buffers less than one frame.
class FrameReader {
 public:
  void feed(std::string_view bytes);
  /// Returns the next complete frame or a problem, each once.
  std::optional<Frame> next();

 private:
  std::optional<Frame> header();
  std::optional<Frame> refuse(std::string problem, std::size_t from);

  std::string buffer_;
  std::size_t skip_ = 0;               // remaining bytes of a rejected content
  std::optional<std::size_t> length_;  // of the current content
  bool lost_ = false;                  // searching for a header after a reported problem
};

[[nodiscard]] std::string framed(std::string_view content);

}  // namespace pw::cli
