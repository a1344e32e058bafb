// Exports scan, quoted and step. The only file of the graph layer that sees the JSON library.
#include "graph/scan_json.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pw::json {
namespace {

class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(std::string_view text, const std::string& file, const Sink& sink)
      : text_(text), file_(file), sink_(sink) {}

  Diagnostics take_errors() { return std::move(errors_); }
  [[nodiscard]] bool failed() const { return !errors_.empty(); }

  bool null() override { return value({}); }
  bool boolean(bool b) override {
    Tree t;
    t.kind = Tree::Kind::boolean;
    t.boolean = b;
    return value(std::move(t));
  }
  bool number_integer(number_integer_t i) override {
    Tree t;
    t.kind = Tree::Kind::integer;
    t.integer = i;
    return value(std::move(t));
  }
  bool number_unsigned(number_unsigned_t u) override {
    if (u > static_cast<number_unsigned_t>(INT64_MAX))
      return error("PW1003", fmt::format("the number {} is out of range", u),
                   "integers have 64 bits");
    return number_integer(static_cast<number_integer_t>(u));
  }
  bool number_float(number_float_t x, const string_t& raw) override {
    bool integral = raw.find_first_of(".eE") == std::string::npos;
    if (integral || !std::isfinite(x))
      return error("PW1003", "the number " + raw.substr(0, 40) + " is out of range",
                   integral ? "integers have 64 bits" : "");
    Tree t;
    t.kind = Tree::Kind::real;
    t.real = x;
    return value(std::move(t));
  }
  bool string(string_t& s) override {
    if (s.size() > kMaxString) return error("PW1002", "a string is longer than 1 MiB");
    Tree t;
    t.kind = Tree::Kind::string;
    t.text = std::move(s);
    return value(std::move(t));
  }
  bool binary(binary_t&) override { return error("PW1001", "binary data"); }

  bool start_object(std::size_t) override { return open(Tree::Kind::object); }
  bool start_array(std::size_t) override { return open(Tree::Kind::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& k) override {
    Frame& frame = stack_.back();
    std::vector<std::string>& keys = frame.tree.keys;
    if (k.size() > kMaxString) return error("PW1002", "a key is longer than 1 MiB");
    if (std::find(keys.begin(), keys.end(), k) != keys.end())
      return error("PW1004", "the key `" + k + "` is there twice");
    if (keys.size() == kMaxMembers)
      return error("PW1002", fmt::format("an object has more than {} members", kMaxMembers));
    keys.push_back(std::move(k));
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& ex) override {
    std::string what = ex.what();
    if (std::size_t tail = what.find(": ");
        what.find("parse error at") != std::string::npos && tail != std::string::npos)
      what = what.substr(tail + 2);
    if (std::size_t bracket = what.find("] ");
        what.starts_with("[json.") && bracket != std::string::npos)
      what = what.substr(bracket + 2);
    bool overflow = what.starts_with("number overflow");
    errors_.push_back(error_in(place(position), overflow ? "PW1003" : "PW1001",
                               overflow ? "a number is out of range" : "not JSON: " + what));
    return false;
  }

 private:
  struct Frame {
    Tree tree;
    bool streamed = false;
    std::size_t count = 0;  // of a streamed list
  };

  bool error(std::string_view code, std::string message, std::string help = {}) {
    errors_.push_back(
        error_in(file_ + " at " + pointer(), code, std::move(message), std::move(help)));
    return false;
  }
  [[nodiscard]] std::string pointer() const {
    std::string out;
    for (std::size_t i = 0; i < stack_.size(); ++i) {
      const Frame& frame = stack_[i];
      if (frame.tree.kind == Tree::Kind::object)
        out += frame.tree.keys.empty() ? "" : step(frame.tree.keys.back());
      else
        out += fmt::format("/{}", frame.streamed ? frame.count : frame.tree.items.size());
    }
    return out.empty() ? "/" : out;
  }
  [[nodiscard]] std::string place(std::size_t position) const {
    std::string_view before =
        text_.substr(0, std::min(position > 0 ? position - 1 : 0, text_.size()));
    auto line = std::count(before.begin(), before.end(), '\n') + 1;
    std::size_t newline = before.rfind('\n');
    std::size_t column =
        newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
    return fmt::format("{}:{}:{} at {}", file_, line, column, pointer());
  }

  bool open(Tree::Kind kind) {
    if (stack_.size() == kMaxNesting)
      return error("PW1002", fmt::format("nested deeper than {}", kMaxNesting));
    if (stack_.empty() && kind != Tree::Kind::object)
      return error("PW1005", "the file is not an object",
                   "a graph is { \"format\": \"piecewise.graph/1\", … }");
    Frame frame;
    frame.tree.kind = kind;
    frame.streamed = stack_.size() == 1 && kind == Tree::Kind::array &&
                     std::find(sink_.streamed.begin(), sink_.streamed.end(),
                               stack_[0].tree.keys.back()) != sink_.streamed.end();
    stack_.push_back(std::move(frame));
    return true;
  }
  bool close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    if (stack_.empty()) return true;
    if (frame.streamed) return true;
    return value(std::move(frame.tree));
  }
  bool value(Tree&& tree) {
    if (stack_.empty())
      return error("PW1005", "the file is not an object",
                   "a graph is { \"format\": \"piecewise.graph/1\", … }");
    Frame& frame = stack_.back();
    if (frame.streamed) {
      if (frame.count == kMaxElements)
        return error("PW1002", fmt::format("a list has more than {} elements", kMaxElements));
      sink_.element(stack_[0].tree.keys.back(), frame.count, std::move(tree));
      ++frame.count;
    } else if (stack_.size() == 1) {
      sink_.member(frame.tree.keys.back(), std::move(tree));
    } else {
      if (frame.tree.items.size() == kMaxItems)
        return error("PW1002", fmt::format("a list has more than {} elements", kMaxItems));
      frame.tree.items.push_back(std::move(tree));
    }
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  const Sink& sink_;
  std::vector<Frame> stack_;
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

Result<std::monostate> scan(std::string_view text, const std::string& file, const Sink& sink) {
  if (text.size() > kMaxText)
    return fail(error_in(file, "PW1002", "the file is larger than 2 GiB"));
  Handler handler(text, file, sink);
  bool ok = nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  if (handler.failed()) return tl::unexpected<Diagnostics>(handler.take_errors());
  if (!ok) return fail(error_in(file, "PW1001", "not JSON"));
  return std::monostate();
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
