// Names read off tokens are the names of the parser's tree.
#include "dsl/editing/mentions.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "dsl/syntax/draft.hpp"
#include "dsl/syntax/walk.hpp"
#include "tests/catch.hpp"
#include "tests/dsl/mutants.hpp"

namespace pw {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The locations of a name, and their descriptions.
using Found = std::map<std::uint32_t, std::string>;

class TreeNames {
 public:
  explicit TreeNames(const std::string& text) : text_(text) {}

  void file(const ast::File& file) {
    for (const ast::Item& item : file.items) std::visit([&](const auto& i) { add(i); }, item);
  }
  Found found;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> covered;  // what was looked at

 private:
  template <class T>
  void add(const T&) {}
  void add(const ast::Rule& rule) {
    variable_ = rule.variant;
    body(rule.body);
    statements(rule.replacement);
    variable_.clear();
  }
  void add(const ast::Group& group) {
    for (const ast::Rule& rule : group.rules) add(rule);
  }
  void add(const ast::Pattern& pattern) {
    for (const auto* types : {&pattern.operand_types, &pattern.result_types})
      for (const std::vector<TypeExpr>& type : *types) this->types(type);
    for (const ast::Body& b : pattern.alternatives) body(b);
  }
  void add(const ast::OpItem& op) { statements(op.body); }
  void add(const ast::Test& test) {
    for (const ast::GraphItem& graph : test.graph) add(graph);
    for (const ast::Expectation& e : test.expectations)
      for (const ast::GraphItem& graph : e.graph) add(graph);
  }
  void add(const ast::GraphItem& graph) {
    for (const ast::GraphItem::Node& node : graph.nodes) statement(node.statement);
  }
  void types(const std::vector<TypeExpr>& all) {
    for (const TypeExpr& type : all) {
      covered.emplace_back(type.span.begin, type.span.end);
      visit_type(type, [&](const Occurrence& o) { see(o); });
    }
  }
  void body(const ast::Body& body) {
    statements(body.statements);
    for (const ast::Clause& clause : body.clauses) {
      statements(clause.statements);
      for (const Expr& guard : clause.guards) {
        covered.emplace_back(guard.span.begin, guard.span.end);
        visit_scalar(guard, Place::guard, [&](const Occurrence& o) { see(o); });
      }
    }
  }
  void statements(const std::vector<Statement>& all) {
    for (const Statement& s : all) statement(s);
  }
  void statement(const Statement& s) {
    covered.emplace_back(s.span.begin, s.span.end);
    visit_statement(s, [&](const Occurrence& o) { see(o); });
  }
  void see(const Occurrence& o) {
    std::uint32_t at = o.span.begin;
    if (o.place == Place::sequence)
      while (text_[at] == '*' || text_[at] == ' ') ++at;
    const bool family = !variable_.empty() && o.name.starts_with(variable_ + ".");
    const bool callee = (o.place == Place::callee || o.place == Place::function) && !family;
    std::string what = callee ? "callee " : "name ";
    what += family ? variable_ : std::string(o.name);
    if (o.place == Place::binder) what += " bound";
    if (o.place == Place::dtype) what += " dtype";
    if (o.place == Place::sequence) what += " sequence";
    found.emplace(at, what);
  }

  const std::string& text_;
  std::string variable_;
};

Found mentioned(const std::string& text,
                const std::vector<std::pair<std::uint32_t, std::uint32_t>>& covered) {
  Found out;
  for (const Mention& m : find_mentions(text).all) {
    if (m.kind != MentionKind::callee && m.kind != MentionKind::name) continue;
    bool inside = false;
    for (const auto& [begin, end] : covered) inside = inside || (m.begin >= begin && m.end <= end);
    if (!inside) continue;
    std::string what = (m.kind == MentionKind::callee ? "callee " : "name ") + m.name;
    if (m.declares) what += " bound";
    if (m.kind == MentionKind::name && m.place == NamePlace::dtype) what += " dtype";
    if (m.place == NamePlace::sequence) what += " sequence";
    out.emplace(m.begin, what);
  }
  return out;
}

TEST_CASE("mentions: the names of every file are those of its tree", "[dsl]") {
  std::size_t names = 0;
  for (const char* folder : {"rules", "examples", "tests/fail", "tests/language", "bench"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".pwr" && entry.path().extension() != ".pwg") continue;
      const std::string text = content(entry.path());
      SourceMap sources;
      const auto [file, wrong] = recover_file(sources, sources.add(entry.path().string(), text));
      if (has_errors(wrong)) continue;  // names are found there too, but without a syntax tree
      TreeNames tree(text);
      tree.file(file);
      INFO(entry.path().string());
      const Found seen = mentioned(text, tree.covered);
      for (const auto& [at, what] : tree.found) {
        const auto it = seen.find(at);
        INFO("at byte " << at << ": " << text.substr(at, 40));
        CHECK((it == seen.end() ? std::string("nothing") : it->second) == what);
      }
      for (const auto& [at, what] : seen) {
        INFO("at byte " << at << ": " << text.substr(at, 40));
        CHECK((tree.found.contains(at) ? what : std::string("nothing")) == what);
      }
      names += seen.size();
    }
  CHECK(names > 5000);
}

TEST_CASE("mentions: items, scopes and names are inside of any text", "[dsl]") {
  std::vector<std::vector<std::string>> texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("rules"))
    if (entry.path().extension() == ".pwr") texts.push_back(test::pieces_of(content(entry.path())));
  const std::vector<std::string> foreign{"{",     "}",  "(", ")",     "[",   "]",   "rule",
                                         "graph", "op", "=", ".",     "*",   "for", "in",
                                         "out",   ":",  ",", "group", "test"};
  Random random(7);
  for (int i = 0; i < 1000; ++i) {
    const std::string text = test::mutated(texts[random.below(texts.size())], foreign, random);
    INFO("mutant " << i);
    const Mentions found = find_mentions(text);
    std::uint32_t before = 0;
    for (const Mention& m : found.all) {
      REQUIRE(m.begin >= before);
      REQUIRE(m.begin < m.end);
      REQUIRE(m.end <= text.size());
      REQUIRE((m.scope == kNoScope || m.scope < found.scopes.size()));
      before = m.begin;
    }
    for (const OutlineItem& item : found.items) {
      REQUIRE(item.begin <= item.end);
      REQUIRE(item.end <= text.size());
      REQUIRE(item.name_end <= text.size());
    }
  }
}

}  // namespace
}  // namespace pw
