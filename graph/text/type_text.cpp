#include "graph/text/type_text.hpp"

#include <charconv>
#include <optional>
#include <variant>
#include <vector>

#include "base/characters.hpp"
#include "base/diagnostic.hpp"

namespace pw {
namespace {

constexpr std::size_t kMaxArguments = 16;  // of Max and Min

bool is_space(char c) { return c == ' ' || c == '\t'; }

tl::unexpected<TextError> wrong(std::size_t offset, std::string message, std::string help = {}) {
  return tl::unexpected<TextError>(TextError{offset, std::move(message), std::move(help)});
}

// Precedence-climbing parser of one dim; depth counts parentheses, signs and calls.
class DimReader {
 public:
  DimReader(Dims& dims, std::string_view text, const KnownSymbol& known)
      : dims_(dims), text_(text), known_(known) {}

  TextResult<DimId> read() {
    TextResult<DimId> dim = sum(0);
    skip();
    if (dim && at_ < text_.size()) return wrong(at_, "expected an operator or the end of the dim");
    return dim;
  }

 private:
  void skip() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  TextResult<DimId> checked(DimId dim, std::size_t offset) const {
    if (!dim.valid()) return wrong(offset, "the dim does not fit in 64 bits, or divides by zero");
    return dim;
  }

  TextResult<DimId> sum(int depth) {
    TextResult<DimId> left = product(depth);
    while (left) {
      skip();
      std::size_t offset = at_;
      bool plus = take("+");
      if (!plus && !take("-")) break;
      TextResult<DimId> right = product(depth);
      if (!right) return right;
      left = checked(plus ? dims_.add(*left, *right) : dims_.sub(*left, *right), offset);
    }
    return left;
  }

  TextResult<DimId> product(int depth) {
    TextResult<DimId> left = power(depth);
    while (left) {
      skip();
      std::size_t offset = at_;
      char op = take("//") || take("/") ? '/' : take("*") ? '*' : take("%") ? '%' : '\0';
      if (op == '\0') break;
      TextResult<DimId> right = power(depth);
      if (!right) return right;
      DimId result = op == '*'   ? dims_.mul(*left, *right)
                     : op == '/' ? dims_.div(*left, *right)
                                 : dims_.mod(*left, *right);
      left = checked(result, offset);
    }
    return left;
  }

  TextResult<DimId> power(int depth) {
    TextResult<DimId> base = atom(depth);
    skip();
    std::size_t offset = at_;
    if (!base || !take("**")) return base;
    TextResult<DimId> exponent = atom(depth);
    if (!exponent) return exponent;
    std::optional<std::int64_t> times = dims_.value(*exponent);
    if (!times || *times < 0 || *times > 8) return wrong(offset, "an exponent must be from 0 to 8");
    DimId result = dims_.constant(1);
    for (std::int64_t i = 0; i < *times && result.valid(); ++i) result = dims_.mul(result, *base);
    return checked(result, offset);
  }

  TextResult<DimId> atom(int depth) {
    if (depth > kMaxDimNesting)
      return wrong(at_, "the dim is nested deeper than " + std::to_string(kMaxDimNesting));
    std::size_t offset = (skip(), at_);
    if (at_ >= text_.size()) return wrong(at_, "expected a number or a symbol");
    if (take("-")) {
      TextResult<DimId> inner = atom(depth + 1);
      if (!inner) return inner;
      return checked(dims_.sub(dims_.constant(0), *inner), offset);
    }
    if (take("(")) return close(sum(depth + 1));
    if (is_digit(text_[at_])) return number();
    if (begins_name(text_[at_])) return name(depth);
    return wrong(at_, "expected a number or a symbol");
  }

  TextResult<DimId> close(TextResult<DimId> inner) {
    if (inner && !take(")")) return wrong(at_, "expected `)`");
    return inner;
  }

  TextResult<DimId> number() {
    std::size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    std::int64_t value = 0;
    auto [end, error] = std::from_chars(text_.data() + begin, text_.data() + at_, value);
    if (error != std::errc() || value > kMaxDim)
      return wrong(begin,
                   "the number " +
                       std::string(text_.substr(begin, std::min<std::size_t>(at_ - begin, 24))) +
                       " is out of range",
                   "a dim is at most 2^40");
    return dims_.constant(value);
  }

  TextResult<DimId> name(int depth) {
    std::size_t begin = at_;
    while (at_ < text_.size() && is_in_name(text_[at_])) ++at_;
    std::string_view word = text_.substr(begin, at_ - begin);
    skip();
    if (at_ < text_.size() && text_[at_] == '(') return call(word, begin, depth);
    if (known_ && !known_(word)) return wrong(begin, "unknown symbol `" + std::string(word) + "`");
    return dims_.symbol(word);
  }

  // Reads a function of PyTorch's symbolic shapes, or `max` and `min` as dims print them.
  TextResult<DimId> call(std::string_view function, std::size_t begin, int depth) {
    take("(");
    if (function.starts_with("CeilTo") || function.starts_with("FloorTo") ||
        function == "ceiling" || function == "floor")
      return rounded(function, depth);
    std::vector<DimId> args;
    do {
      TextResult<DimId> arg = sum(depth + 1);
      if (!arg) return arg;
      args.push_back(*arg);
    } while (args.size() < kMaxArguments && take(","));
    if (!take(")")) return wrong(at_, "expected `)`");
    DimId out;
    if (!apply(function, args, out))
      return wrong(begin,
                   "no function `" + std::string(function) + "` of " + std::to_string(args.size()) +
                       " in dims",
                   "known: Max, Min, Mod, PythonMod, FloorDiv, CleanDiv, IntTrueDiv, CeilToInt, "
                   "FloorToInt, ModularIndexing");
    return checked(out, begin);
  }

  bool apply(std::string_view function, const std::vector<DimId>& args, DimId& out) {
    if (function == "Max" || function == "max" || function == "Min" || function == "min") {
      out = args[0];
      const bool largest = function[1] == 'a';
      for (std::size_t i = 1; i < args.size(); ++i)
        out = largest ? dims_.max(out, args[i]) : dims_.min(out, args[i]);
      return true;
    }
    if (args.size() == 1 && (function == "Identity" || function == "ToFloat"))
      return out = args[0], true;
    if (args.size() == 3 && function == "ModularIndexing")
      return out = dims_.mod(dims_.div(args[0], args[1]), args[2]), true;
    if (args.size() != 2) return false;
    if (function == "Mod" || function == "PythonMod")
      return out = dims_.mod(args[0], args[1]), true;
    if (function == "FloorDiv" || function == "CleanDiv")
      return out = dims_.div(args[0], args[1]), true;
    if (function != "IntTrueDiv" && function != "TrueDiv") return false;
    if (dims_.value(dims_.mod(args[0], args[1])) == 0) out = dims_.div(args[0], args[1]);
    return true;
  }

  // Reads CeilToInt(IntTrueDiv(a, b)), ceiling(a/b), …: a rounded quotient; a whole number stays
  // unchanged.
  TextResult<DimId> rounded(std::string_view function, int depth) {
    const bool up = function.starts_with("C") || function.starts_with("c");
    const std::size_t begin = (skip(), at_);
    if (take("IntTrueDiv") || take("FloatTrueDiv") || take("TrueDiv")) {
      if (!take("(")) return wrong(at_, "expected `(`");
      TextResult<DimId> a = sum(depth + 1);
      if (!a) return a;
      if (!take(",")) return wrong(at_, "expected `,`");
      TextResult<DimId> b = close(sum(depth + 1));
      if (!b) return b;
      if (!take(")")) return wrong(at_, "expected `)`");
      return quotient(*a, *b, up, begin);
    }
    TextResult<DimId> a = power(depth + 1);
    while (a && take("*")) {
      TextResult<DimId> factor = power(depth + 1);
      if (!factor) return factor;
      a = checked(dims_.mul(*a, *factor), begin);
    }
    if (!a) return a;
    if (take("/")) {
      TextResult<DimId> b = close(power(depth + 1));
      if (!b) return b;
      return quotient(*a, *b, up, begin);
    }
    return close(a);
  }

  TextResult<DimId> quotient(DimId a, DimId b, bool up, std::size_t begin) {
    if (!up) return checked(dims_.div(a, b), begin);
    const DimId minus = dims_.constant(-1);  // rounded up: -(-a // b)
    return checked(dims_.mul(dims_.div(dims_.mul(a, minus), b), minus), begin);
  }

  Dims& dims_;
  std::string_view text_;
  const KnownSymbol& known_;
  std::size_t at_ = 0;
};

std::optional<DType> dtype_word(std::string_view word) {
  if (word == "f8e4m3fn") return DType::f8e4m3;
  return dtype_named(word);
}

std::vector<std::string> dtype_words() {
  std::vector<std::string> out;
  for (int i = 0; i < kDTypeCount; ++i) out.emplace_back(name(static_cast<DType>(i)));
  return out;
}

// Returns the position after the `]` that closes the `[` at `open`, or npos.
std::size_t after_bracket(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']' && --depth == 0) return i + 1;
  }
  return std::string_view::npos;
}

// Parses "n, 4096" to dims; commas inside parentheses belong to a dim.
TextResult<Shape> parse_shape(Context& context, std::string_view text, std::size_t base,
                              const KnownSymbol& known) {
  Shape shape;
  if (text.find_first_not_of(" \t") == std::string_view::npos) return shape;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (shape.size() == kMaxRank)
      return wrong(base + begin, "more than " + std::to_string(kMaxRank) + " dims");
    TextResult<DimId> dim = parse_dim(context.dims, text.substr(begin, i - begin), known);
    if (!dim)
      return wrong(base + begin + dim.error().offset, dim.error().message, dim.error().help);
    std::optional<std::int64_t> value = context.dims.value(*dim);
    if (value && (*value < 0 || *value > kMaxDim))
      return wrong(base + begin, "a dim must be from 0 to 2^40, not " + std::to_string(*value));
    shape.push_back(*dim);
    begin = i + 1;
  }
  return shape;
}

TextResult<std::monostate> check_count(const Context& context, const Shape& shape,
                                       std::size_t offset) {
  __int128 count = 1;
  for (DimId dim : shape) {
    std::optional<std::int64_t> value = context.dims.value(dim);
    if (value && *value == 0) return {};
    if (value) count *= *value;
    if (count > (static_cast<__int128>(1) << 60))
      return wrong(offset, "the shape has more than 2^60 elements");
  }
  return {};
}

TextResult<TypeId> parse(Context& context, std::string_view text, const KnownSymbol& known,
                         bool fx) {
  std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  std::size_t open = text.find('[', begin);
  std::string_view word = text.substr(begin, open == std::string_view::npos ? open : open - begin);
  while (!word.empty() && is_space(word.back())) word.remove_suffix(1);
  if (word == "?" && open == std::string_view::npos) return Types::unknown();
  std::optional<DType> dtype = dtype_word(word);
  if (!dtype) {
    std::string near = nearest(word, dtype_words());
    return wrong(begin,
                 word.empty() ? "expected a type such as bf16[n, 4096]"
                              : "unknown dtype `" + std::string(word.substr(0, 40)) + "`",
                 near.empty() ? "the dtypes are b8 i8 i32 i64 u8 f8e4m3 f8e5m2 f16 bf16 f32 f64"
                              : "did you mean `" + near + "`?");
  }
  if (open == std::string_view::npos)
    return wrong(text.size(), "expected `[` and the dims",
                 "rank 0 is written " + std::string(word) + "[]");
  std::size_t end = after_bracket(text, open);
  if (end == std::string_view::npos) return wrong(text.size(), "expected `]`");
  if (!fx && text.find_first_not_of(" \t", end) != std::string_view::npos)
    return wrong(end, "expected the end of the type");
  TextResult<Shape> shape =
      parse_shape(context, text.substr(open + 1, end - open - 2), open + 1, known);
  if (!shape) return tl::unexpected<TextError>(shape.error());
  TextResult<std::monostate> counted = check_count(context, *shape, open);
  if (!counted) return tl::unexpected<TextError>(counted.error());
  return context.types.get(*dtype, *shape);
}

}  // namespace

TextResult<DimId> parse_dim(Dims& dims, std::string_view text, const KnownSymbol& known) {
  if (text.size() > kMaxDimText)
    return wrong(0, "the dim is longer than " + std::to_string(kMaxDimText) + " bytes");
  return DimReader(dims, text, known).read();
}

TextResult<TypeId> parse_type(Context& context, std::string_view text, const KnownSymbol& known) {
  return parse(context, text, known, false);
}
TextResult<TypeId> parse_fx_type(Context& context, std::string_view text) {
  return parse(context, text, {}, true);
}

}  // namespace pw
