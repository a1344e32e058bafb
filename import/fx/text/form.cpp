#include "import/fx/text/form.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "base/characters.hpp"
#include "base/io/file_kind.hpp"
#include "base/trim.hpp"
#include "import/fx/fx.hpp"

namespace pw::fx {
namespace {

// Returns the length of a prefix like
// "[rank0]:V1122 14:50:03.198000 17894 torch/x.py:2987] [0/0] [__graph_code] ", or 0.
std::size_t log_prefix(std::string_view line) {
  std::size_t at = 0;
  while (line.substr(at).starts_with("[rank")) {
    const std::size_t end = line.find("]:", at);
    if (end == std::string_view::npos || end > at + 16) return 0;
    at = end + 2;
  }
  std::string_view rest = line.substr(at);
  if (rest.size() < 12 || std::string_view("VDIWEC").find(rest[0]) == std::string_view::npos ||
      !std::all_of(rest.begin() + 1, rest.begin() + 5, is_digit) || rest[5] != ' ')
    return 0;
  const std::size_t end = rest.find("] ");
  const std::size_t last = end == std::string_view::npos ? rest.rfind(']') : end;
  if (last == std::string_view::npos || rest.substr(0, last).find(".py:") == std::string_view::npos)
    return 0;
  std::size_t after = last + 1;
  while (rest.substr(after).starts_with(" [")) {  // the frame, and what is logged
    const std::size_t close = rest.find(']', after);
    const std::string_view word = rest.substr(after + 2, std::min(close, rest.size()) - after - 2);
    const bool frame =
        !word.empty() && (is_digit(word[0]) || word[0] == '!' || word[0] == '_' || word == "-");
    if (close == std::string_view::npos || !frame) break;
    after = close + 1;
  }
  if (after < rest.size() && rest[after] == ' ') ++after;
  return at + after;
}

// Returns the length of "[2023-04-10 12:28:11,630] torch._functorch.aot_autograd.__aot_graphs:
// [INFO] ".
std::size_t old_log_prefix(std::string_view line) {
  if (line.size() < 30 || line[0] != '[' || !is_digit(line[1]) || line[5] != '-') return 0;
  for (std::string_view level : {"[INFO] ", "[DEBUG] ", "[WARNING] ", "[ERROR] "})
    if (const std::size_t at = line.find(level); at != std::string_view::npos)
      return at + level.size();
  return 0;
}

// Returns the position of `class X(…):`; a log puts a path before it.
std::size_t class_at(std::string_view content) {
  if (!content.ends_with(":")) return std::string_view::npos;
  const std::size_t at = content.find("class ");
  if (at == std::string_view::npos || at == 0) return at;
  const std::string_view before = content.substr(0, at);
  const bool path = before.back() == ' ' &&
                    before.find_first_of("#\"'(=:") == std::string_view::npos &&
                    before.find_first_of("/<") != std::string_view::npos;
  return path ? at : std::string_view::npos;
}

std::string class_name(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' ', 5), text.size()));
  return std::string(text.substr(0, text.find_first_of("(: ")));
}

bool is_listing_head(std::string_view content) {
  return content.starts_with("graph(") && content.ends_with(":") &&
         content.find(')') != std::string_view::npos &&
         content.find(" = ") == std::string_view::npos;
}
bool is_listing_line(std::string_view content) {
  return content.starts_with("%") && content.find(" = ") != std::string_view::npos &&
         content.find("[target=") != std::string_view::npos;
}
bool is_table_head(std::string_view content) {
  if (!content.starts_with("opcode ")) return false;
  for (std::string_view word : {" name ", " target ", " args "})
    if (content.find(word) == std::string_view::npos) return false;
  return content.ends_with("kwargs");
}
bool is_table_line(std::string_view content) {
  for (std::string_view op :
       {"placeholder ", "get_attr ", "call_function ", "call_method ", "call_module ", "output "})
    if (content.starts_with(op)) return true;
  return content.starts_with("---");
}

class Finder {
 public:
  explicit Finder(std::string_view text) : text_(text) {}

  std::vector<GraphText> find() {
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      line(at, end);
      at = end + 1;
    }
    return std::move(found_);
  }

 private:
  // State of the lines with one prefix; a log may mix the lines of several threads.
  struct Stream {
    std::optional<std::size_t> graph;  // open
    std::size_t indent = 0;            // of its class or function
    bool has_class = false, has_forward = false, exported = false;
    std::optional<std::size_t> signed_graph;  // whose signature is read
    std::string title;
  };

  void line(std::size_t begin, std::size_t end) {
    const std::string_view whole = text_.substr(begin, end - begin);
    std::size_t prefix = log_prefix(whole);
    const bool logged = prefix > 0;
    Stream& stream = streams_[whole.substr(0, prefix)];
    if (!logged && (prefix = old_log_prefix(whole)) > 0) close(stream);
    const std::string_view content = trimmed(whole.substr(prefix));
    if (content.empty()) return logged ? void() : keep(stream, begin, begin, end);
    const std::size_t indent = static_cast<std::size_t>(content.data() - whole.data()) - prefix;
    const std::size_t at = begin + prefix + indent;
    if (content.starts_with("TRACED GRAPH")) return close(stream);
    if (content.starts_with("=====") && content.ends_with("=====")) {
      std::string_view title = content;
      while (title.starts_with("=")) title.remove_prefix(1);
      while (title.ends_with("=")) title.remove_suffix(1);
      close_graph(stream);
      stream.title = std::string(trimmed(title));
      return;
    }
    if (content == "ExportedProgram:") {
      close(stream);
      stream.exported = true;
      return;
    }
    if (content.starts_with("Graph signature:") || content.starts_with("Range constraints:"))
      sign(stream);
    if (stream.signed_graph) return add_signature(stream, content);
    if (const std::size_t c = class_at(content); c != std::string_view::npos)
      return take_class(stream, content.substr(c), at + c, end, c == 0 ? indent : 0, logged);
    if (content.starts_with("def forward(")) return take_def(stream, at, end, indent, logged);
    if (is_listing_head(content) || (!stream.graph && is_listing_line(content)))
      open(stream, GraphText::Kind::listing, logged);
    if (is_table_head(content)) open(stream, GraphText::Kind::table, logged);
    if (!stream.graph) return;
    GraphText& graph = found_[*stream.graph];
    if (graph.kind == GraphText::Kind::listing) {
      const bool last = content.starts_with("return");
      if (!last && !content.starts_with("%") && !content.starts_with("#") &&
          !is_listing_head(content))
        return close_graph(stream);
      keep(stream, at, at, end);
      if (last) close_graph(stream);
      return;
    }
    if (graph.kind == GraphText::Kind::table) {
      if (!is_table_head(content) && !is_table_line(content)) return close_graph(stream);
      keep(stream, at, at, end);
      if (content.starts_with("output")) close_graph(stream);
      return;
    }
    keep(stream, begin + prefix, at, end);
  }

  void take_class(Stream& s, std::string_view content, std::size_t at, std::size_t end,
                  std::size_t indent, bool logged) {
    const std::string name = class_name(content);
    const bool inside = s.graph && s.has_class && found_[*s.graph].kind == GraphText::Kind::code &&
                        (indent > s.indent || calls(found_[*s.graph], name));
    if (!inside) {
      open(s, GraphText::Kind::code, logged);
      s.indent = indent;
      s.has_class = true;
      GraphText& graph = found_.back();
      graph.exported = s.exported;
      if (graph.title.empty() && name != "GraphModule" && name != "<lambda>") graph.title = name;
    }
    keep(s, at, at, end);
  }

  void take_def(Stream& s, std::size_t at, std::size_t end, std::size_t indent, bool logged) {
    const bool code = s.graph && found_[*s.graph].kind == GraphText::Kind::code;
    const bool inside = code && s.has_class && (indent > s.indent || !s.has_forward);
    if (!inside) {
      open(s, GraphText::Kind::code, logged);
      s.indent = indent;
      s.has_class = false;
    }
    s.has_forward = true;
    keep(s, at, at, end);
  }

  // Returns true if the graph so far calls a submodule of this name.
  bool calls(const GraphText& graph, const std::string& name) const {
    const std::string call = "self." + name;
    for (const auto& [begin, end] : graph.parts)
      if (text_.substr(begin, end - begin).find(call) != std::string_view::npos) return true;
    return false;
  }

  void open(Stream& s, GraphText::Kind kind, bool logged) {
    GraphText graph;
    graph.kind = kind;
    graph.title = s.title;
    graph.logged = logged;
    s.graph = found_.size();
    s.has_forward = s.has_class = false;
    found_.push_back(std::move(graph));
  }

  void keep(Stream& s, std::size_t from, std::size_t at, std::size_t end) {
    if (!s.graph) return;
    GraphText& graph = found_[*s.graph];
    if (text_.substr(at, end - at).find(" = ") != std::string_view::npos) ++graph.statements;
    if (!graph.parts.empty() && graph.parts.back().second + 1 == from)
      graph.parts.back().second = end;
    else
      graph.parts.emplace_back(from, end);
  }

  void sign(Stream& s) {
    if (!s.graph || s.signed_graph) return;
    s.signed_graph = s.graph;
    found_[*s.graph].exported = true;
    s.graph.reset();
  }
  void add_signature(Stream& s, std::string_view content) {
    if (class_at(content) != std::string_view::npos || content.starts_with("def ")) {
      s.signed_graph.reset();
      return;
    }
    found_[*s.signed_graph].signature += std::string(content) + "\n";
    if (content.starts_with("Range constraints:")) s.signed_graph.reset();
  }
  static void close_graph(Stream& s) {
    s.graph.reset();
    s.signed_graph.reset();
    s.exported = false;
  }
  static void close(Stream& s) {
    close_graph(s);
    s.title.clear();
  }

  std::string_view text_;
  std::vector<GraphText> found_;
  std::map<std::string_view, Stream> streams_;
};

struct Seen {
  std::size_t v1 = 0, v2 = 0, ops = 0, python = 0, typed = 0;
};

void look(const Expr& e, Seen& seen) {
  if (e.kind == Expr::Kind::call && e.text != "device" && e.text != "torch.device" &&
      e.text != "slice" && e.text != "torch.Size" && e.text != "dict" &&
      e.text.find("pytree.") == std::string::npos && !e.text.starts_with("torch.sym_") &&
      !e.text.starts_with("math.")) {
    seen.v1 += e.text.ends_with("higher_order.auto_functionalized");
    seen.v2 += e.text.ends_with("higher_order.auto_functionalized_v2");
    (e.text.starts_with("torch.ops.") || e.text.starts_with("operator.") ? seen.ops
                                                                         : seen.python)++;
  }
  for (const Expr& part : e.args) look(part, seen);
}

std::string level(const GraphText& graph, const Function& function) {
  Seen seen;
  for (const Parameter& p : function.parameters) seen.typed += !p.type.empty();
  for (const Statement& s : function.statements) {
    look(s.value, seen);
    seen.typed += !s.type.empty();
  }
  if (graph.exported) return "torch.export's text";
  if (std::ranges::any_of(function.parameters,
                          [](const Parameter& p) { return p.name.starts_with("tangents_"); }))
    return "AOT autograd's joint or backward graph";
  const bool dynamo = seen.python > 0;
  if (seen.typed == 0)
    return dynamo ? "gm.code: Python's calls without types"
                  : "make_fx or gm.code: ATen without types";
  if (dynamo) return "Dynamo's graph, before AOT autograd";
  if (seen.v2 > 0) return "AOT autograd, functionalised (v2)";
  if (seen.v1 > 0) return "AOT autograd, functionalised (v1)";
  if (graph.title == "AFTER POST GRAD") return "Inductor's graph after its post-grad passes";
  return "AOT autograd";
}

}  // namespace

std::vector<GraphText> find_graphs(std::string_view text) { return Finder(text).find(); }

std::string only(std::string_view text, const GraphText& graph) {
  std::string out(text.size(), ' ');
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    out[at] = '\n';
  for (const auto& [begin, end] : graph.parts)
    std::copy(text.begin() + static_cast<std::ptrdiff_t>(begin),
              text.begin() + static_cast<std::ptrdiff_t>(end),
              out.begin() + static_cast<std::ptrdiff_t>(begin));
  return out;
}

std::string describe(const GraphText& graph, std::size_t pieces, const Function& function) {
  if (graph.kind == GraphText::Kind::listing) return "str(graph) of torch.fx";
  if (graph.kind == GraphText::Kind::table) return "print_tabular() of torch.fx";
  std::string out = level(graph, function);
  if (pieces > 0)
    out = "a split module of " + std::to_string(pieces) + (pieces == 1 ? " piece" : " pieces") +
          "; " + out;
  return out;
}

}  // namespace pw::fx

namespace pw {

bool looks_like_fx(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] == '{' || !known_as(text).empty())
    return false;
  return !fx::find_graphs(text).empty();
}

}  // namespace pw
