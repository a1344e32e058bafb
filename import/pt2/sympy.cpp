#include "import/pt2/sympy.hpp"

#include <vector>

#include "import/fx/text/ast.hpp"

namespace pw::pt2 {
namespace {

constexpr int kDeepestCall = 32;
constexpr std::size_t kLongest = 1 << 14;  // bytes of one expression

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_decimal(char c) { return c >= '0' && c <= '9'; }

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : std::string(between)) + part;
  return "(" + out + ")";
}

class SympyReader {
 public:
  explicit SympyReader(std::string_view text) : text_(text) {}

  std::optional<std::string> read() {
    std::optional<std::string> out = expression(0);
    return out && at_ == text_.size() ? out : std::nullopt;
  }

 private:
  std::optional<std::string> expression(int depth) {
    const std::string_view name = word();
    if (name.empty() || depth > kDeepestCall || !take("(")) return std::nullopt;
    if (name == "Integer") return integer();
    if (name == "Symbol") return symbol();
    if (name == "Float") return real();
    std::vector<std::string> operands;
    do {
      std::optional<std::string> operand = expression(depth + 1);
      if (!operand) return std::nullopt;
      operands.push_back(std::move(*operand));
    } while (take(", "));
    if (!take(")")) return std::nullopt;
    if (name == "Add") return joined(operands, " + ");
    if (name == "Mul") return joined(operands, " * ");
    if (name == "Pow") return joined(operands, " ** ");
    return std::string(name) + joined(operands, ", ");
  }

  /// Reads the rest of `Integer(`.
  std::optional<std::string> integer() {
    const std::size_t begin = at_;
    take("-");
    while (at_ < text_.size() && is_decimal(text_[at_])) ++at_;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (digits.empty() || digits == "-" || !take(")")) return std::nullopt;
    return digits.front() == '-' ? "(" + std::string(digits) + ")" : std::string(digits);
  }

  /// Reads the rest of `Float(`: a whole number in quotes, and its precision.
  std::optional<std::string> real() {
    if (!take("'")) return std::nullopt;
    const std::size_t begin = at_;
    take("-");
    while (at_ < text_.size() && is_decimal(text_[at_])) ++at_;
    const std::string digits(text_.substr(begin, at_ - begin));
    if (take("."))
      while (take("0")) {
      }
    if (!take("'") || digits.empty() || digits == "-") return std::nullopt;
    while (take(", ")) {
      if (word().empty() || !take("=")) return std::nullopt;
      while (at_ < text_.size() && is_decimal(text_[at_])) ++at_;
    }
    return take(")") ? std::optional("(" + digits + ")") : std::nullopt;
  }

  /// Reads the rest of `Symbol(`: a name in quotes, and its assumptions.
  std::optional<std::string> symbol() {
    if (!take("'")) return std::nullopt;
    const std::string name(word());
    if (!fx::is_word(name) || !take("'")) return std::nullopt;
    while (take(", "))
      if (word().empty() || !take("=") || word().empty()) return std::nullopt;
    return take(")") ? std::optional(name) : std::nullopt;
  }

  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || (at_ > begin && is_decimal(text_[at_]))))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  bool take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::string> dim_of_sympy(std::string_view text) {
  if (text.size() > kLongest) return std::nullopt;
  return SympyReader(text).read();
}

}  // namespace pw::pt2
