#include "backends/host_arguments.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/try.hpp"

namespace pw {
namespace {

using ArgumentKind = HostArgument::Kind;

constexpr int kDeepest = 32;  // brackets in brackets
constexpr std::size_t kMostArguments = 4096;

class SkeletonReader {
 public:
  SkeletonReader(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  Result<std::vector<HostArgument>> run() {
    auto all = items('\0', 0);
    if (!all) return all;
    if (at_ < text_.size()) return refuse();
    return all;
  }

 private:
  tl::unexpected<Diagnostics> refuse() const {
    return fail(error_in(
        place_, "PW1213",
        fmt::format("syntax error in the call's skeleton at `{}`",
                    std::string(text_.substr(at_, 20))),
        "write arguments such as %0, None, [%1, 2], mask = $mask in the attribute `call`"));
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] bool ends(char close) {
    skip_space();
    return close == '\0' ? at_ == text_.size() : at_ < text_.size() && text_[at_] == close;
  }

  /// Parses arguments up to and including the closing bracket.
  Result<std::vector<HostArgument>> items(char close, int depth) {
    std::vector<HostArgument> out;
    if (depth > kDeepest) return refuse();
    while (!ends(close)) {
      auto one = PW_TRY(argument(depth));
      out.push_back(std::move(one));
      if (++read_ > kMostArguments) return refuse();
      if (!take(',') && !ends(close)) return refuse();
    }
    if (close != '\0') ++at_;
    return out;
  }

  /// Parses an argument with its optional keyword.
  Result<HostArgument> argument(int depth) {
    skip_space();
    const std::size_t start = at_;
    const std::string_view name = word();
    if (!name.empty() && !is_digit(name[0]) && take('=')) {
      auto out = value(depth);
      if (out) out->keyword = name;
      return out;
    }
    at_ = start;
    return value(depth);
  }

  std::string_view word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_in_name(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  Result<HostArgument> value(int depth) {
    skip_space();
    if (at_ >= text_.size()) return refuse();
    HostArgument out;
    const char c = text_[at_];
    if (c == '%') return operand();
    if (c == '$') return attribute();
    if (c == '[' || c == '(') {
      ++at_;
      auto inner = items(c == '[' ? ']' : ')', depth + 1);
      if (!inner) return forward(inner);
      out.kind = c == '[' ? ArgumentKind::list : ArgumentKind::tuple;
      out.items = std::move(*inner);
      return out;
    }
    if (c == '{') return dictionary(depth);
    if (c == '\'' || c == '"') return quoted(c);
    if (is_digit(c) || c == '-' || c == '.') return number();
    return name(depth);
  }

  /// {'key': value, …}, as dict(key = value, …).
  Result<HostArgument> dictionary(int depth) {
    HostArgument out;
    out.kind = ArgumentKind::call;
    out.word = "dict";
    if (depth >= kDeepest) return refuse();
    for (++at_; !take('}');) {
      skip_space();
      if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return refuse();
      auto key = quoted(text_[at_]);
      if (!key) return key;
      if (!take(':')) return refuse();
      auto one = value(depth + 1);
      if (!one) return one;
      one->keyword = std::get<std::string>(key->value);
      out.items.push_back(std::move(*one));
      if (++read_ > kMostArguments) return refuse();
      if (!take(',') && !ends('}')) return refuse();
    }
    return out;
  }

  Result<HostArgument> operand() {
    ++at_;
    HostArgument out;
    out.kind = ArgumentKind::operand;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), out.operand);
    if (error != std::errc()) return refuse();
    at_ = static_cast<std::size_t>(end - text_.data());
    return out;
  }

  Result<HostArgument> attribute() {
    ++at_;
    HostArgument out;
    out.word = word();
    if (out.word.empty()) return refuse();
    return out;
  }

  /// Returns the character of an escape after the backslash: n, t, r, xHH, or the character itself.
  char escaped() {
    switch (text_[++at_]) {
      case 'n': return '\n';
      case 't': return '\t';
      case 'r': return '\r';
      case 'x': break;
      default: return text_[at_];
    }
    unsigned code = 0;
    const char* digits = text_.data() + at_ + 1;
    const char* last = text_.data() + std::min(at_ + 3, text_.size());
    const auto [end, error] = std::from_chars(digits, last, code, 16);
    if (error != std::errc()) return 'x';
    at_ += static_cast<std::size_t>(end - digits);
    return static_cast<char>(code);
  }

  Result<HostArgument> quoted(char quote) {
    HostArgument out;
    std::string text;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      text += text_[at_] == '\\' && at_ + 1 < text_.size() ? escaped() : text_[at_];
    }
    if (at_ >= text_.size()) return refuse();
    ++at_;
    out.value = std::move(text);
    return out;
  }

  Result<HostArgument> number() {
    HostArgument out;
    const char *begin = text_.data() + at_, *last = text_.data() + text_.size();
    std::int64_t whole = 0;
    double real = 0;
    const auto as_whole = std::from_chars(begin, last, whole);
    const auto as_real = std::from_chars(begin, last, real);
    if (as_real.ec != std::errc()) return refuse();
    if (as_whole.ec == std::errc() && as_whole.ptr == as_real.ptr)
      out.value = whole;
    else
      out.value = real;
    at_ += static_cast<std::size_t>(as_real.ptr - begin);
    return out;
  }

  /// Parses a constant, a call, or a name such as torch.float32, which becomes a string.
  Result<HostArgument> name(int depth) {
    HostArgument out;
    const std::size_t begin = at_;
    std::string text(word());
    while (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      text += '.';
      text += word();
    }
    if (text.empty()) return refuse();
    if (text == "None" || text == "none") return out;
    if (text == "True" || text == "true" || text == "False" || text == "false") {
      out.value = text[0] == 'T' || text[0] == 't';
      return out;
    }
    if (take('(')) {
      auto inner = items(')', depth + 1);
      if (!inner) return forward(inner);
      if (text != "slice") {  // device(type='cuda'): kept as text
        out.value = std::string(text_.substr(begin, at_ - begin));
        return out;
      }
      out.kind = ArgumentKind::call;
      out.word = std::move(text);
      out.items = std::move(*inner);
      return out;
    }
    out.value = std::move(text);
    return out;
  }

  std::string_view text_;
  const std::string& place_;
  std::size_t at_ = 0, read_ = 0;
};

/// Returns the position in a name such as `arg3`, or nothing.
std::optional<std::size_t> position(std::string_view attribute) {
  if (!attribute.starts_with("arg") || attribute.size() < 4 || attribute.size() > 7) return {};
  std::size_t out = 0;
  const char* last = attribute.data() + attribute.size();
  const auto [end, error] = std::from_chars(attribute.data() + 3, last, out);
  return error == std::errc() && end == last ? std::optional(out) : std::nullopt;
}

}  // namespace

Result<std::vector<HostArgument>> read_skeleton(std::string_view text, const std::string& place) {
  return SkeletonReader(text, place).run();
}

std::vector<HostArgument> plain_skeleton(std::size_t operands,
                                         const std::vector<std::string>& attributes) {
  std::map<std::size_t, std::string> placed;
  std::vector<HostArgument> out, keywords;
  for (const std::string& name : attributes) {
    HostArgument argument;
    argument.word = name;
    if (const auto at = position(name)) {
      placed.emplace(*at, name);
      continue;
    }
    argument.keyword = name;
    keywords.push_back(std::move(argument));
  }
  std::size_t next = 0;
  for (std::size_t at = 0; next < operands || !placed.empty(); ++at) {
    HostArgument argument;
    if (const auto found = placed.find(at); found != placed.end()) {
      argument.word = found->second;
      placed.erase(found);
    } else if (next < operands) {
      argument.kind = ArgumentKind::operand;
      argument.operand = next++;
    }
    out.push_back(std::move(argument));
  }
  std::move(keywords.begin(), keywords.end(), std::back_inserter(out));
  return out;
}

}  // namespace pw
