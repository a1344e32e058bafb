#include "lsp/frames.hpp"

#include <algorithm>

#include "base/parse_number.hpp"
#include "base/trim.hpp"

namespace pw::cli {
namespace {

constexpr std::string_view kLength = "content-length";

char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_length(std::string_view name) {
  return std::equal(name.begin(), name.end(), kLength.begin(), kLength.end(),
                    [](char a, char b) { return lowered(a) == b; });
}

/// Returns where the next header may begin, after `from`; npos if no header is found.
std::size_t next_header(std::string_view text, std::size_t from) {
  const auto it =
      std::search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), kLength.begin(),
                  kLength.end(), [](char a, char b) { return lowered(a) == b; });
  return it == text.end() ? std::string_view::npos : static_cast<std::size_t>(it - text.begin());
}

}  // namespace

void FrameReader::feed(std::string_view bytes) {
  const std::size_t dropped = std::min(skip_, bytes.size());
  skip_ -= dropped;
  buffer_ += bytes.substr(dropped);
}

std::optional<Frame> FrameReader::next() {
  while (true) {
    if (length_) {
      if (buffer_.size() < *length_) return {};
      Frame out{buffer_.substr(0, *length_), {}};
      buffer_.erase(0, *length_);
      length_.reset();
      return out;
    }
    const bool looking = lost_;
    std::optional<Frame> problem = header();
    if (problem) return problem;
    if (!length_ && (lost_ == looking || buffer_.empty())) return {};
  }
}

/// Drops bytes that cannot be a header, and reports each such stretch once.
std::optional<Frame> FrameReader::refuse(std::string problem, std::size_t from) {
  const std::size_t at = next_header(buffer_, std::min(from, buffer_.size()));
  const bool reported = lost_;
  if (at == std::string::npos) {
    // The last bytes may be the beginning of a header.
    const std::size_t kept = std::min(buffer_.size(), kLength.size() - 1);
    buffer_.erase(0, buffer_.size() - kept);
    lost_ = true;
  } else {
    buffer_.erase(0, at);
    lost_ = false;
  }
  if (reported) return {};
  return Frame{{}, std::move(problem)};
}

std::optional<Frame> FrameReader::header() {
  if (lost_) {
    refuse({}, 0);
    if (lost_) return {};
  }
  const std::size_t end = buffer_.find("\r\n\r\n");
  if (end == std::string::npos) {
    // A header is short and begins with a letter; anything else is not a header.
    if (buffer_.size() > kMostHeaderBytes) return refuse("the header has more than 4096 bytes", 1);
    return {};
  }
  if (end > kMostHeaderBytes) return refuse("the header has more than 4096 bytes", 1);
  std::optional<std::size_t> length;
  std::string_view lines(buffer_.data(), end);
  while (!lines.empty()) {
    const std::size_t stop = std::min(lines.find("\r\n"), lines.size());
    const std::string_view line = lines.substr(0, stop);
    lines.remove_prefix(std::min(stop + 2, lines.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return refuse("a header line has no `:`", 1);
    if (!is_length(trimmed(line.substr(0, colon)))) continue;
    const std::string_view value = trimmed(line.substr(colon + 1));
    length = parse_number<std::size_t>(value);
    if (!length) return refuse("Content-Length is not a number", 1);
  }
  if (!length) return refuse("the header has no Content-Length", 1);
  if (*length > kMostFrameBytes) {
    buffer_.erase(0, end + 4);
    skip_ = *length - std::min(*length, buffer_.size());
    buffer_.erase(0, std::min(*length, buffer_.size()));
    return Frame{{}, "the message has more than 64 MiB"};
  }
  buffer_.erase(0, end + 4);
  length_ = length;
  return {};
}

std::string framed(std::string_view content) {
  return "Content-Length: " + std::to_string(content.size()) + "\r\n\r\n" + std::string(content);
}

}  // namespace pw::cli
