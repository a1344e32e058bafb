// Reads str(graph) and print_tabular() of torch.fx, one node per line.
#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "base/parse_number.hpp"
#include "base/trim.hpp"
#include "base/try.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {
namespace {

using Names = std::set<std::string, std::less<>>;

constexpr std::string_view kBlank = " \t\r\n";
constexpr std::string_view kWordEnd = " \t\r\n,()[]{}:%=\"'";

Expr of_kind(Expr::Kind kind, Span span, std::string text = {}) {
  Expr e;
  e.kind = kind;
  e.span = span;
  e.text = std::move(text);
  return e;
}

// Reads one argument list or target as Python prints it. A listing writes nodes as %x and strings
// without quotes, a table writes nodes as x and strings with them.
class CallReader {
 public:
  CallReader(std::string_view text, std::size_t at, std::size_t end, SourceId source,
             const Names& names, bool bare)
      : text_(text), at_(at), end_(end), source_(source), names_(names), bare_(bare) {}

  Result<Expr> read() {
    Result<Expr> e = value(0);
    skip();
    if (e && at_ < end_) return wrong("expected the end of the arguments");
    return e;
  }

 private:
  Span from(std::size_t begin) const {
    return {source_, static_cast<std::uint32_t>(begin),
            static_cast<std::uint32_t>(std::max(begin + 1, at_))};
  }
  tl::unexpected<Diagnostics> wrong(const std::string& message) const {
    return fail(Span{source_, static_cast<std::uint32_t>(at_), static_cast<std::uint32_t>(at_ + 1)},
                "PW0501", message);
  }
  void skip() {
    while (at_ < end_ && kBlank.find(text_[at_]) != std::string_view::npos) ++at_;
  }
  [[nodiscard]] char peek() const { return at_ < end_ ? text_[at_] : '\0'; }

  Result<Expr> value(int depth) {
    skip();
    if (depth > kMaxNesting)
      return wrong("brackets are nested deeper than " + std::to_string(kMaxNesting));
    const std::size_t begin = at_;
    switch (peek()) {
      case '%': {
        ++at_;
        while (at_ < end_ && text_.substr(at_, 1).find_first_of(kWordEnd) != 0) ++at_;
        return of_kind(Expr::Kind::name, from(begin),
                       std::string(text_.substr(begin + 1, at_ - begin - 1)));
      }
      case '[': return items(Expr::Kind::list, ']', depth);
      case '(': return items(Expr::Kind::tuple, ')', depth);
      case '{': return dict(depth);
      case '"':
      case '\'': return quoted();
      default: return word(depth);
    }
  }

  Result<Expr> items(Expr::Kind kind, char closing, int depth) {
    const std::size_t begin = at_++;
    Expr out = of_kind(kind, {});
    while (true) {
      skip();
      if (peek() == closing) break;
      Result<Expr> item = value(depth + 1);
      if (!item) return item;
      out.args.push_back(std::move(*item));
      skip();
      if (peek() == ',') {
        ++at_;
      } else if (peek() != closing) {
        return wrong(std::string("expected `,` or `") + closing + "`");
      }
    }
    ++at_;
    out.span = from(begin);
    return out;
  }

  Result<Expr> dict(int depth) {
    const std::size_t begin = at_++;
    Expr out = of_kind(Expr::Kind::call, {}, "dict");
    while (true) {
      skip();
      if (peek() == '}') break;
      const std::size_t colon = text_.find(':', at_);
      if (colon == std::string_view::npos || colon >= end_) return wrong("expected `key: value`");
      std::string_view key = trimmed(text_.substr(at_, colon - at_));
      if (key.size() > 1 && (key.front() == '\'' || key.front() == '"'))
        key = key.substr(1, key.size() - 2);
      at_ = colon + 1;
      Result<Expr> item = value(depth + 1);
      if (!item) return item;
      out.keywords.emplace_back(key);
      out.args.push_back(std::move(*item));
      skip();
      if (peek() == ',') {
        ++at_;
      } else if (peek() != '}') {
        return wrong("expected `,` or `}`");
      }
    }
    ++at_;
    out.span = from(begin);
    return out;
  }

  Result<Expr> quoted() {
    const std::size_t begin = at_;
    const char quote = text_[at_++];
    std::string out;
    while (at_ < end_ && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < end_) ++at_;
      out += text_[at_++];
    }
    if (at_ == end_) return wrong("this string is not closed");
    ++at_;
    return of_kind(Expr::Kind::string, from(begin), std::move(out));
  }

  // Reads a bare argument, up to the `, ` or bracket that ends it.
  Result<Expr> word(int depth) {
    const std::size_t begin = at_;
    while (at_ < end_) {
      const char c = text_[at_];
      if (c == '(' || c == ')' || c == ']' || c == '}' || c == '[') break;
      if (c == ',' && (at_ + 1 == end_ || kBlank.find(text_[at_ + 1]) != std::string_view::npos ||
                       text_[at_ + 1] == ')'))
        break;
      ++at_;
    }
    const std::string_view text = trimmed(text_.substr(begin, at_ - begin));
    if (peek() == '(' && !text.empty()) return call(std::string(text), begin, depth);
    if (text.empty()) return wrong("expected an argument");
    return literal(text, from(begin));
  }

  Result<Expr> call(std::string callee, std::size_t begin, int depth) {
    if (callee == "device") {  // its argument, `type='cpu', index=0`, is irrelevant here
      int open = 0;
      do {
        open += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
        ++at_;
      } while (at_ < end_ && open > 0);
      return of_kind(Expr::Kind::call, from(begin), std::move(callee));
    }
    const bool kept = bare_;
    bare_ = true;  // inside a call, str(slice) and the like write nodes as x
    Result<Expr> inner = items(Expr::Kind::tuple, ')', depth);
    bare_ = kept;
    if (!inner) return inner;
    inner->kind = Expr::Kind::call;
    inner->text = std::move(callee);
    inner->span = from(begin);
    return inner;
  }

  [[nodiscard]] Expr literal(std::string_view text, Span span) const {
    Expr e = of_kind(Expr::Kind::name, span, std::string(text));
    if (text == "None") {
      e.kind = Expr::Kind::none;
    } else if (text == "True" || text == "False") {
      e.kind = Expr::Kind::boolean;
      e.integer = text == "True" ? 1 : 0;
    } else if (text == "...") {
      e.text = "Ellipsis";
    } else if (number(text, e) || text == "Ellipsis" || text == "inf" || text == "nan" ||
               text.starts_with("torch.") || (bare_ && names_.contains(text))) {
      // as it is
    } else if (text == "-inf") {
      e.kind = Expr::Kind::real;
      e.real = -std::numeric_limits<double>::infinity();
    } else {
      e.kind = Expr::Kind::string;
    }
    return e;
  }

  static bool number(std::string_view text, Expr& e) {
    if (text.find_first_not_of("-0123456789.e+") != std::string_view::npos) return false;
    const auto integer = parse_number<std::int64_t>(text);
    const auto real = integer ? std::nullopt : parse_number<double>(text);
    if (integer) e.kind = Expr::Kind::integer, e.integer = *integer;
    if (real) e.kind = Expr::Kind::real, e.real = *real;
    return integer || real;
  }

  std::string_view text_;
  std::size_t at_, end_;
  SourceId source_;
  const Names& names_;
  bool bare_;
};

// "<built-in method sin of type object at 0x7f…>" → torch.sin; "aten.mm.default" → torch.ops.….
std::string callee_of(std::string_view target) {
  auto word_after = [&](std::string_view lead) {
    std::string_view rest = target.substr(lead.size());
    return std::string(rest.substr(0, rest.find_first_of(" >")));
  };
  static const Names kNotOperators = {"linear",   "gelu",       "scaled_dot_product_attention",
                                      "pad",      "one_hot",    "elu",
                                      "hardtanh", "leaky_relu", "softplus"};
  if (target.starts_with("<built-in method ")) return "torch." + word_after("<built-in method ");
  if (target.starts_with("<built-in function ")) {
    std::string name = word_after("<built-in function ");
    return (kNotOperators.contains(name) ? "torch._C._nn." : "operator.") + name;
  }
  if (target.starts_with("<function ")) return "torch.nn.functional." + word_after("<function ");
  if (target.starts_with("_operator.")) return std::string(target.substr(1));
  if (target.starts_with("builtins.")) return std::string(target.substr(9));
  const bool path =
      std::ranges::count(target, '.') >= 2 || target.find("::") != std::string_view::npos;
  for (std::string_view known : {"torch.", "operator.", "math.", "builtins."})
    if (target.starts_with(known)) return std::string(target);
  return path ? "torch.ops." + std::string(target) : std::string(target);
}

// One node, from its parts. Methods are calls of `.name`, modules of `self.name`.
class Builder {
 public:
  Builder(std::string_view text, SourceId source, bool bare)
      : text_(text), source_(source), bare_(bare) {}

  struct Range {
    std::size_t begin = 0, end = 0;
  };
  struct Node {
    std::string name, op, target;
    Range line;
    std::optional<Range> args, kwargs;
  };

  void parameter(std::string name, Range at) {
    if (!names_.insert(name).second) return;
    out_.parameters.push_back({std::move(name), span(at), "", {}});
  }

  Status add(const Node& node) {
    if (node.op == "placeholder") {
      parameter(node.name, node.line);
      return {};
    }
    Statement s;
    s.span = span(node.line);
    Expr value = PW_TRY(value_of(node));
    s.value = std::move(value);
    if (node.op == "output") {
      s.kind = Statement::Kind::return_;
    } else {
      s.targets.push_back(of_kind(Expr::Kind::name, s.span, node.name));
      names_.insert(node.name);
    }
    out_.statements.push_back(std::move(s));
    return {};
  }

  Result<Expr> read(Range at, bool bare) const {
    return CallReader(text_, at.begin, at.end, source_, names_, bare).read();
  }
  [[nodiscard]] Span span(Range at) const {
    return {source_, static_cast<std::uint32_t>(at.begin),
            static_cast<std::uint32_t>(std::max(at.begin + 1, at.end))};
  }
  Function finish(Span whole) {
    out_.span = whole;
    return std::move(out_);
  }

 private:
  Result<Expr> value_of(const Node& node) const {
    Expr call = of_kind(Expr::Kind::call, span(node.line));
    if (node.op == "get_attr") {
      call.kind = Expr::Kind::name;
      call.text = "self." + node.target;
      return call;
    }
    if (node.args) {
      Result<Expr> args = read(*node.args, bare_ || node.op == "output");
      if (!args) return args;
      if (node.op == "output") {
        const bool one = args->kind == Expr::Kind::tuple && args->args.size() == 1 && bare_;
        return one ? std::move(args->args[0]) : std::move(*args);
      }
      if (args->kind == Expr::Kind::tuple || args->kind == Expr::Kind::list)
        call.args = std::move(args->args);
      else
        call.args.push_back(std::move(*args));
    }
    if (node.kwargs) {
      Result<Expr> kwargs = read(*node.kwargs, bare_);
      if (!kwargs) return kwargs;
      for (std::size_t i = 0; i < kwargs->keywords.size(); ++i) {
        call.keywords.push_back(std::move(kwargs->keywords[i]));
        call.args.push_back(std::move(kwargs->args[i]));
      }
    }
    call.text = node.op == "call_method"   ? "." + node.target
                : node.op == "call_module" ? "self." + node.target
                                           : callee_of(node.target);
    return call;
  }

  std::string_view text_;
  SourceId source_;
  bool bare_;
  Names names_;
  Function out_;
};

using Range = Builder::Range;

template <class Each>
void for_lines(std::string_view text, Each each) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view content = trimmed(text.substr(at, end - at));
    if (!content.empty()) {
      const auto begin = static_cast<std::size_t>(content.data() - text.data());
      if (!each(content, Range{begin, begin + content.size()})) return;
    }
    at = end + 1;
  }
}

// `%x : [num_users=2] = call_function[target=torch.ops.aten.mm.default](args = (%a, %b), kwargs =
// {})`
std::optional<Builder::Node> node_of(std::string_view line, Range at) {
  Builder::Node node;
  node.line = at;
  const std::size_t colon = line.find(' '), equals = line.find("] = ");
  if (colon == std::string_view::npos || equals == std::string_view::npos) return std::nullopt;
  node.name = std::string(line.substr(1, colon - 1));
  if (node.name.ends_with(":")) node.name.pop_back();
  constexpr std::string_view kTarget = "[target=", kArgs = "](args = ", kKwargs = ", kwargs = ";
  const std::size_t op = equals + 4, target = line.find(kTarget, op);
  if (target == std::string_view::npos) return std::nullopt;
  node.op = std::string(line.substr(op, target - op));
  const std::size_t begin = target + kTarget.size();
  const std::size_t args = line.find(kArgs, begin);
  if (args == std::string_view::npos) {
    const std::size_t close = line.find(']', begin);
    if (close == std::string_view::npos) return std::nullopt;
    node.target = std::string(line.substr(begin, close - begin));
    return node;
  }
  node.target = std::string(line.substr(begin, args - begin));
  const std::size_t kwargs = line.rfind(kKwargs);
  if (!line.ends_with(")") || kwargs == std::string_view::npos || kwargs < args + kArgs.size())
    return std::nullopt;
  node.args = Range{at.begin + args + kArgs.size(), at.begin + kwargs};
  node.kwargs = Range{at.begin + kwargs + kKwargs.size(), at.end - 1};
  return node;
}

tl::unexpected<Diagnostics> not_a_node(Span span) {
  return fail(
      span, "PW0501", "this is not a node of a graph",
      "write a node as %x : [num_users=1] = call_function[target=…](args = (…), kwargs = {})");
}

}  // namespace

Result<Function> parse_listing(std::string_view text, SourceId source) {
  Builder builder(text, source, false);
  Diagnostics errors;
  Range whole;
  auto add = [&](Status done) {
    if (!done) std::move(done.error().begin(), done.error().end(), std::back_inserter(errors));
    return errors.size() < kMaxDiagnostics;
  };
  for_lines(text, [&](std::string_view line, Range at) {
    if (whole.end == 0) whole = at;
    whole.end = at.end;
    if (line.starts_with("#")) return true;
    if (line.starts_with("graph(")) {  // older ones list the inputs here
      std::string_view inside = line.substr(6, line.rfind(')') - 6);
      while (!inside.empty()) {
        const std::size_t comma = std::min(inside.find(','), inside.size());
        std::string_view one = trimmed(inside.substr(0, comma));
        inside.remove_prefix(std::min(comma + 1, inside.size()));
        if (one.starts_with("%")) one.remove_prefix(1);
        one = trimmed(one.substr(0, one.find(':')));
        if (is_word(one)) builder.parameter(std::string(one), at);
      }
      return true;
    }
    constexpr std::string_view kReturn = "return";
    if (line.starts_with(kReturn)) {
      Builder::Node node;
      node.op = "output";
      node.line = at;
      node.args = Range{at.begin + kReturn.size(), at.end};
      add(builder.add(node));
      return false;
    }
    std::optional<Builder::Node> node = node_of(line, at);
    if (!node) return add(not_a_node(builder.span(at)));
    return add(builder.add(*node));
  });
  if (!errors.empty()) return tl::unexpected<Diagnostics>(std::move(errors));
  return builder.finish(builder.span(whole));
}

Result<Function> parse_table(std::string_view text, SourceId source) {
  Builder builder(text, source, true);
  Diagnostics errors;
  Range whole;
  std::vector<std::size_t> columns;  // where each begins, from the beginning of the line
  bool ruled = false;
  auto line_begin = [&](Range at) {
    const std::size_t line = text.rfind('\n', at.begin);
    return line == std::string_view::npos ? 0 : line + 1;
  };
  for_lines(text, [&](std::string_view line, Range at) {
    const std::size_t begin = line_begin(at);
    if (whole.end == 0) whole = at;
    whole.end = at.end;
    if (line.starts_with("opcode")) {
      for (std::string_view word : {"opcode", "name", "target", "args", "kwargs"}) {
        const std::size_t from = columns.empty() ? at.begin : begin + columns.back() + 1;
        columns.push_back(text.find(word, from) - begin);
      }
      return true;
    }
    if (line.starts_with("---") && !ruled) {
      columns.clear();
      for (std::size_t i = at.begin; i < at.end; ++i)
        if (text[i] == '-' && (i == at.begin || text[i - 1] != '-')) columns.push_back(i - begin);
      return ruled = true;
    }
    auto cell = [&](std::size_t i) {
      const std::size_t from = std::min(begin + columns[i], at.end);
      const std::size_t next = i + 1 < columns.size() ? begin + columns[i + 1] : at.end;
      const std::size_t to = std::max(from, std::min(next, at.end));
      const std::string_view content = trimmed(text.substr(from, to - from));
      const auto first = static_cast<std::size_t>(content.data() - text.data());
      return Range{first, first + content.size()};
    };
    auto text_of = [&](Range r) { return std::string(text.substr(r.begin, r.end - r.begin)); };
    if (columns.size() != 5 || at.begin < begin + columns[0]) {
      errors = {error_at(builder.span(at), "PW0501", "this table does not have five columns",
                         "the columns are opcode, name, target, args and kwargs")};
      return false;
    }
    Builder::Node node{text_of(cell(1)), text_of(cell(0)), text_of(cell(2)), at, cell(3), cell(4)};
    if (node.op == "placeholder") node.args = node.kwargs = std::nullopt;
    if (node.kwargs && node.kwargs->begin == node.kwargs->end) node.kwargs.reset();
    if (Status done = builder.add(node); !done)
      std::move(done.error().begin(), done.error().end(), std::back_inserter(errors));
    return errors.size() < kMaxDiagnostics && node.op != "output";
  });
  if (!errors.empty()) return tl::unexpected<Diagnostics>(std::move(errors));
  return builder.finish(builder.span(whole));
}

}  // namespace pw::fx
