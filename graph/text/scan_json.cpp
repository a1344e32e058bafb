// A dedicated scanner. A tree consists of views of the text, in memory that is reused for each
// element, which reads some ten times as fast as a general library. That library only writes
// unusual strings.
#include "graph/text/scan_json.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory_resource>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/characters.hpp"
#include "base/utf8.hpp"

namespace pw::json {
namespace {

constexpr std::size_t kKilobyte = 1000;

void append_utf8(std::string& out, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | (c >> 6));
  } else {
    if (c < 0x10000) {
      put(0xe0 | (c >> 12));
    } else {
      put(0xf0 | (c >> 18));
      put(0x80 | ((c >> 12) & 0x3f));
    }
    put(0x80 | ((c >> 6) & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file, const Sink& sink)
      : text_(text), file_(file), sink_(sink) {}

  Status run() {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    skip_space();
    if (!top() || (skip_space(), at_ < text_.size() && !syntax("text follows its end")))
      return tl::unexpected<Diagnostics>(std::move(errors_));
    return {};
  }

 private:
  /// A step of the path to the scanner's position: a member, or an element of a list.
  struct Step {
    std::string_view key;
    std::size_t index = 0;
    bool member = false;
  };

  // ---- errors
  [[nodiscard]] std::string pointer() const {
    std::string out;
    for (const Step& s : path_) {
      if (s.member)
        out += step(s.key);
      else
        out += fmt::format("/{}", s.index);
    }
    return out.empty() ? "/" : out;
  }
  bool error(std::string_view code, std::string message, std::string help = {}) {
    errors_.push_back(
        error_in(file_ + " at " + pointer(), code, std::move(message), std::move(help)));
    return false;
  }
  bool syntax(std::string_view what) {
    const std::string_view before = text_.substr(0, std::min(at_, text_.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t newline = before.rfind('\n');
    const std::size_t column =
        newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
    errors_.push_back(error_in(fmt::format("{}:{}:{} at {}", file_, line, column, pointer()),
                               "PW1001", fmt::format("not JSON: {}", what)));
    return false;
  }

  // ---- tokens
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    skip_space();
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) return syntax("a value is expected here");
    at_ += w.size();
    return true;
  }

  /// Reads a string; no data after an error. Returned in registers: reading back freshly written
  /// smaller pieces stalls the processor (store forwarding).
  std::string_view string(const char* what) {
    if (!take('"')) return syntax(fmt::format("{} is expected here", what)), std::string_view();
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      at_ += ordinary(at_);
      if (at_ >= text_.size()) break;
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') return fitting({text_.data() + begin, at_++ - begin});
      if (c == '\\') return escaped_string(begin);
      if (!plain(c)) return {};
    }
    return syntax("the string is not closed"), std::string_view();
  }
  std::string_view fitting(std::string_view text) {
    if (text.size() <= kMaxString) return text;
    return error("PW1002", "a string is longer than 1 MiB"), std::string_view();
  }
  /// Counts the ASCII characters from here on that need no inspection, eight at a time. The byte
  /// tests in words are those of Anderson's "Bit Twiddling Hacks"; of the marked bytes only the
  /// lowest is certain.
  [[nodiscard]] std::size_t ordinary(std::size_t from) const {
    constexpr std::uint64_t kOnes = ~std::uint64_t{0} / 255, kTops = kOnes * 0x80;
    const auto zeros = [](std::uint64_t x) { return (x - kOnes) & ~x & kTops; };
    std::size_t at = from;
    for (; at + 8 <= text_.size(); at += 8) {
      std::uint64_t w = 0;
      std::memcpy(&w, text_.data() + at, 8);
      const std::uint64_t below_space = (w - kOnes * 0x20) & ~w & kTops;
      const std::uint64_t found =
          (w & kTops) | below_space | zeros(w ^ kOnes * '"') | zeros(w ^ kOnes * '\\');
      if (found == 0) continue;
      if constexpr (std::endian::native == std::endian::little)
        at += static_cast<std::size_t>(std::countr_zero(found)) / 8;
      break;
    }
    return at - from;
  }
  /// Steps over one character.
  bool plain(unsigned char c) {
    if (c < 0x20) return syntax("a control character in a string");
    const std::size_t length = c < 0x80 ? 1 : first_character(text_.substr(at_)).length;
    if (length == 0) return syntax("a string that is not UTF-8");
    at_ += length;
    return true;
  }
  std::string_view escaped_string(std::size_t begin) {
    std::string text(text_.substr(begin, at_ - begin));
    while (at_ < text_.size()) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      const std::size_t from = at_;
      if (c == '"') {
        ++at_;
        return fitting(keep(text));
      }
      if (c == '\\') {
        if (!escape(text)) return {};
      } else {
        if (!plain(c)) return {};
        text += text_.substr(from, at_ - from);
      }
    }
    return syntax("the string is not closed"), std::string_view();
  }
  bool escape(std::string& text) {
    ++at_;
    const char c = peek();
    constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (const std::size_t i = kFrom.find(c); at_ < text_.size() && i != std::string_view::npos) {
      text += kTo[i];
      ++at_;
      return true;
    }
    std::uint32_t code = 0, low = 0;
    if (c != 'u' || !hex(code)) return syntax("an escape that JSON does not support");
    if (code >= 0xdc00 && code <= 0xdfff) return syntax("half of a surrogate pair");
    if (code >= 0xd800 && code <= 0xdbff) {
      if (peek() != '\\' || (++at_, peek() != 'u') || !hex(low) || low < 0xdc00 || low > 0xdfff)
        return syntax("half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(text, code);
    return true;
  }
  /// Reads `uXXXX`.
  bool hex(std::uint32_t& out) {
    const std::string_view digits = text_.substr(std::min(at_ + 1, text_.size()), 4);
    const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
    if (digits.size() < 4 || bad != std::errc() || end != digits.data() + 4) return false;
    at_ += 5;
    return true;
  }

  bool number(Tree& out) {
    const std::size_t begin = at_;
    if (peek() == '-') ++at_;
    const std::size_t digits = at_;
    while (is_digit(peek())) ++at_;
    if (at_ == digits) return syntax("a value is expected here");
    if (text_[digits] == '0' && at_ - digits > 1) return syntax("a number with leading zeros");
    bool integral = true;
    if (peek() == '.') {
      integral = false;
      ++at_;
      if (!some_digits()) return false;
    }
    if (peek() == 'e' || peek() == 'E') {
      integral = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!some_digits()) return false;
    }
    const std::string_view token = text_.substr(begin, at_ - begin);
    return integral ? integer(token, out) : real(token, out);
  }
  bool some_digits() {
    if (!is_digit(peek())) return syntax("a digit is expected here");
    while (is_digit(peek())) ++at_;
    return true;
  }
  bool integer(std::string_view token, Tree& out) {
    out.kind = Tree::Kind::integer;
    const auto [end, bad] = std::from_chars(token.data(), token.data() + token.size(), out.integer);
    return bad == std::errc() ||
           error("PW1003", fmt::format("the number {} is out of range", token.substr(0, 40)),
                 "integers have 64 bits");
  }
  bool real(std::string_view token, Tree& out) {
    out.kind = Tree::Kind::real;
    const auto [end, bad] = std::from_chars(token.data(), token.data() + token.size(), out.real);
    // A number that is too small is valid: it is subnormal, or 0.
    if (bad != std::errc()) out.real = std::strtod(std::string(token).c_str(), nullptr);
    return std::isfinite(out.real) ||
           error("PW1003", fmt::format("the number {} is out of range", token.substr(0, 40)));
  }

  // ---- values
  template <class T>
  std::span<const T> keep(std::span<const T> items) {
    if (items.empty()) return {};
    T* copy = static_cast<T*>(memory_.allocate(items.size() * sizeof(T), alignof(T)));
    std::uninitialized_copy(items.begin(), items.end(), copy);
    return {copy, items.size()};
  }
  std::string_view keep(const std::string& text) {
    const std::span<const char> copy = keep(std::span<const char>(text));
    return {copy.data(), copy.size()};
  }

  bool value(Tree& out, std::size_t depth) {
    skip_space();
    if (at_ >= text_.size()) return syntax("the text ends where a value is expected");
    switch (peek()) {
      case '{': return object(out, depth);
      case '[': return array(out, depth);
      case '"':
        out.kind = Tree::Kind::string;
        out.text = string("a value");
        return out.text.data() != nullptr;
      case 'n': return word("null");
      case 't':
        out.kind = Tree::Kind::boolean;
        out.boolean = true;
        return word("true");
      case 'f': out.kind = Tree::Kind::boolean; return word("false");
      default: return number(out);
    }
  }
  /// Reads the next item of `open_`. An item without children is written in place.
  bool item(std::size_t depth) {
    skip_space();
    if (peek() != '{' && peek() != '[') return value(open_.emplace_back(), depth);
    Tree nested;
    if (!value(nested, depth)) return false;
    open_.push_back(nested);
    return true;
  }
  bool deeper(std::size_t depth) {
    return depth < kMaxNesting ||
           error("PW1002", fmt::format("nested deeper than {}", kMaxNesting));
  }
  bool array(Tree& out, std::size_t depth) {
    if (!deeper(depth)) return false;
    ++at_;
    out.kind = Tree::Kind::array;
    const std::size_t begin = open_.size();
    if (!take(']')) {
      path_.emplace_back();
      do {
        path_.back().index = open_.size() - begin;
        if (path_.back().index == kMaxItems)
          return error("PW1002", fmt::format("a list has more than {} elements", kMaxItems));
        if (!item(depth + 1)) return false;
      } while (take(','));
      path_.pop_back();
      if (!take(']')) return syntax("`,` or `]` is expected here");
    }
    out.items = keep(std::span<const Tree>(open_).subspan(begin));
    open_.resize(begin);
    return true;
  }
  /// Reads the next key, which must differ from those from `begin` on, and the colon; extends the
  /// path.
  bool key(std::size_t begin) {
    const std::string_view k = string("a key");
    if (k.data() == nullptr) return false;
    path_.back().key = k;
    path_.back().member = true;
    const auto first = open_keys_.begin() + static_cast<std::ptrdiff_t>(begin);
    if (std::find(first, open_keys_.end(), k) != open_keys_.end())
      return error("PW1004", fmt::format("the key `{}` is duplicated", k));
    if (open_keys_.size() - begin == kMaxMembers)
      return error("PW1002", fmt::format("an object has more than {} members", kMaxMembers));
    open_keys_.push_back(k);
    return take(':') || syntax("`:` is expected here");
  }
  bool object(Tree& out, std::size_t depth) {
    if (!deeper(depth)) return false;
    const std::size_t first = at_++;
    out.kind = Tree::Kind::object;
    const std::size_t begin = open_.size(), keys = open_keys_.size();
    if (!take('}')) {
      path_.emplace_back();
      do {
        if (!key(keys) || !item(depth + 1)) return false;
      } while (take(','));
      path_.pop_back();
      if (!take('}')) return syntax("`,` or `}` is expected here");
    }
    out.items = keep(std::span<const Tree>(open_).subspan(begin));
    out.keys = keep(std::span<const std::string_view>(open_keys_).subspan(keys));
    out.text = text_.substr(first, at_ - first);
    open_.resize(begin);
    open_keys_.resize(keys);
    return true;
  }

  // ---- the top object
  bool top() {
    if (peek() != '{' && at_ < text_.size() &&
        std::string_view("[\"tfn-0123456789").find(peek()) != std::string_view::npos)
      return error("PW1005", "the file is not an object",
                   "a graph is { \"format\": \"piecewise.graph/1\", … }");
    if (!take('{')) return syntax("an object is expected here");
    if (take('}')) return true;
    path_.emplace_back();
    do {
      if (!key(0)) return false;
      const std::string_view k = top_keys_.emplace_back(open_keys_.back());
      open_keys_.back() = path_.back().key = k;  // outlives the memory of trees
      skip_space();
      const bool streams = peek() == '[' && std::find(sink_.streamed.begin(), sink_.streamed.end(),
                                                      k) != sink_.streamed.end();
      if (streams) {
        if (!stream(k)) return false;
      } else {
        Tree member;
        if (!value(member, 1)) return false;
        sink_.member(k, member);
      }
    } while (take(','));
    path_.pop_back();
    return take('}') || syntax("`,` or `}` is expected here");
  }
  bool stream(std::string_view list) {
    ++at_;
    if (take(']')) return true;
    path_.emplace_back();
    std::size_t count = 0;
    do {
      path_.back().index = count;
      if (count == kMaxElements)
        return error("PW1002", fmt::format("a list has more than {} elements", kMaxElements));
      Tree element;
      if (!value(element, 2)) return false;
      sink_.element(list, count++, element);
      if (sink_.progress && count % kToldEvery == 0)
        sink_.progress("reading", at_ / kKilobyte, text_.size() / kKilobyte, "kB");
      memory_.release();
    } while (take(','));
    path_.pop_back();
    return take(']') || syntax("`,` or `]` is expected here");
  }

  std::string_view text_;
  const std::string& file_;
  const Sink& sink_;
  std::size_t at_ = 0;
  std::vector<Step> path_;
  std::vector<Tree> open_;                   // items of the lists and objects not yet closed
  std::vector<std::string_view> open_keys_;  // of the objects not yet closed
  std::deque<std::string> top_keys_;
  std::vector<std::byte> first_ = std::vector<std::byte>(1 << 16);
  std::pmr::monotonic_buffer_resource memory_{first_.data(), first_.size()};
  Diagnostics errors_;
};

}  // namespace

const Tree* Tree::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size() && i < items.size(); ++i)
    if (keys[i] == key) return &items[i];
  return nullptr;
}
std::string_view name(Tree::Kind kind) {
  switch (kind) {
    case Tree::Kind::null: return "null";
    case Tree::Kind::boolean: return "a boolean";
    case Tree::Kind::integer: return "an integer";
    case Tree::Kind::real: return "a number";
    case Tree::Kind::string: return "a string";
    case Tree::Kind::array: return "a list";
    case Tree::Kind::object: return "an object";
  }
  return "?";
}

Status scan(std::string_view text, const std::string& file, const Sink& sink) {
  if (text.size() > kMaxText)
    return fail(error_in(file, "PW1002", "the file is larger than 2 GiB"));
  return Scanner(text, file, sink).run();
}
std::string quoted(std::string_view text) {
  bool plain = std::all_of(text.begin(), text.end(),
                           [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
  if (plain) return "\"" + std::string(text) + "\"";
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string step(std::string_view key) {
  std::string out = "/";
  for (char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

}  // namespace pw::json
