#include "dsl/program.hpp"

#include <algorithm>

#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

Diagnostic twice(std::string_view what, const std::string& name, Span again, Span before) {
  Diagnostic d =
      error_at(again, "PW0401", std::string(what) + " " + in_ticks(name) + " is declared twice",
               "rename one of them");
  d.secondary.push_back({before, "first declared here"});
  return d;
}

/// Namespace that maps a name to its declaration.
class Namespace {
 public:
  explicit Namespace(Diagnostics& out) : out_(out) {}
  void declare(std::string_view what, const std::string& name, Span span) {
    auto [it, fresh] = names_.emplace(name, span);
    if (!fresh) out_.push_back(twice(what, name, span, it->second));
  }

 private:
  Diagnostics& out_;
  std::map<std::string, Span> names_;
};

class Collection {
 public:
  explicit Collection(Diagnostics& out)
      : out_(out), strategies_(out), tests_(out), explores_(out) {}

  void file(const ast::File& file, bool root) {
    root_ = root;
    for (const ast::Item& item : file.items) std::visit([&](const auto& i) { add(i); }, item);
  }
  Program finish() {
    multiply_tables();
    return std::move(program_);
  }

 private:
  template <class Map, class T>
  void keep(Map& map, std::string_view what, const T& item, Span span) {
    auto [it, fresh] = map.emplace(item.name, &item);
    if (!fresh) out_.push_back(twice(what, item.name, span, it->second->span));
  }

  /// Replaces a product of tables by a table with a row for each choice of rows.
  void multiply_tables() {
    for (auto& [name, table] : program_.tables) {
      if (table->factors.empty()) continue;
      auto product = std::make_shared<ast::Table>(*table);
      product->rows.resize(1);
      for (const auto& [factor, span] : table->factors) multiply(*product, factor, span);
      program_.products.push_back(product);
      table = product.get();
    }
  }

  void multiply(ast::Table& product, const std::string& factor, Span span) {
    const auto found = program_.tables.find(factor);
    if (found == program_.tables.end() || !found->second->factors.empty()) {
      std::vector<std::string> names;
      for (const auto& [name, table] : program_.tables)
        if (table->factors.empty()) names.push_back(name);
      out_.push_back(error_at(span, "PW0376", "no table of rows is called " + in_ticks(factor),
                              did_you_mean(factor, names)));
      return;
    }
    const ast::Table& by = *found->second;
    product.columns.insert(product.columns.end(), by.columns.begin(), by.columns.end());
    std::vector<ast::Table::Row> rows;
    for (const ast::Table::Row& left : product.rows) {
      for (const ast::Table::Row& right : by.rows) {
        ast::Table::Row row{product.span, left.name, left.cells};
        row.name += (row.name.empty() ? "" : "_") + right.name;
        row.cells.insert(row.cells.end(), right.cells.begin(), right.cells.end());
        rows.push_back(std::move(row));
      }
    }
    product.rows = std::move(rows);
  }

  void add(const ast::Use&) {}
  void add(const ast::Param& p) {
    if (dtype_named(p.name))
      out_.push_back(error_at(
          p.span, "PW0241", in_ticks(p.name) + " is a dtype, so it cannot be the name of a param"));
    keep(program_.params, "param", p, p.span);
  }
  void add(const ast::Extern& e) { keep(program_.externs, "extern", e, e.span); }
  void add(const ast::OpItem& o) { program_.ops.push_back(&o); }
  void add(const ast::ForeignItem& f) { program_.foreigns.push_back(&f); }
  void add(const ast::Table& t) { keep(program_.tables, "table", t, t.name_span); }
  void add(const ast::Pattern& p) { keep(program_.patterns, "pattern", p, p.name_span); }
  void add(const ast::Rule& r) {
    strategy("rule", r.name, r.name_span);
    program_.rules.push_back({&r, "", root_});
  }
  void add(const ast::Group& g) {
    strategy("group", g.name, g.name_span);
    program_.groups.push_back(&g);
    Namespace members(out_);
    for (const ast::Rule& r : g.rules) {
      members.declare("rule", r.name, r.name_span);
      program_.rules.push_back({&r, g.name, root_});
    }
  }
  void add(const ast::Pass& p) {
    strategy("pass", p.name, p.name_span);
    program_.passes.push_back(&p);
  }
  void add(const ast::Pipeline& p) {
    strategy("pipeline", p.name, p.name_span);
    program_.pipelines.push_back(&p);
  }
  void add(const ast::Split& s) { program_.splits.push_back(&s); }
  void add(const ast::Capture& c) {
    program_.captures.push_back(&c);
    if (program_.captures.size() == 2)
      out_.push_back(twice("`capture`", "capture", c.span, program_.captures.front()->span));
  }
  void add(const ast::Explore& e) {
    explores_.declare("explore", e.name, e.name_span);
    program_.explores.push_back(&e);
  }
  void add(const ast::Test& t) {
    tests_.declare("test", t.name, t.name_span);
    program_.tests.push_back(&t);
  }
  void add(const ast::GraphItem& g) {
    program_.graphs.push_back(&g);
    out_.push_back(error_at(g.span, "PW0402", "a graph is not allowed at top level",
                            "put it in a test, or in a .pwg file"));
  }

  void strategy(std::string_view what, const std::string& name, Span span) {
    if (is_builtin_pass(name))
      out_.push_back(error_at(span, "PW0403", in_ticks(name) + " is a built-in pass",
                              "give this " + std::string(what) + " another name"));
    strategies_.declare(what, name, span);
  }

  Diagnostics& out_;
  Program program_;
  Namespace strategies_, tests_, explores_;
  bool root_ = false;
};

}  // namespace

bool is_builtin_pass(std::string_view name) {
  return name == "dce" || name == "cse" || name == "elide_clones";
}

std::string_view reference_head(std::string_view reference) {
  if (reference.ends_with(".*")) return reference.substr(0, reference.size() - 2);
  return reference.substr(0, reference.find('['));
}

bool Program::declares(std::string_view reference) const {
  const std::string_view head = reference_head(reference);
  const bool group = std::any_of(groups.begin(), groups.end(),
                                 [&](const ast::Group* g) { return g->name == head; });
  return group || std::any_of(rules.begin(), rules.end(),
                              [&](const RuleDecl& r) { return r.full_name() == head; });
}

std::vector<std::string> Program::strategy_names() const {
  std::vector<std::string> names{"dce", "cse", "elide_clones"};
  for (const RuleDecl& r : rules) names.push_back(r.full_name());
  for (const ast::Group* g : groups) names.push_back(g->name);
  for (const ast::Pass* p : passes) names.push_back(p->name);
  for (const ast::Pipeline* p : pipelines) names.push_back(p->name);
  std::sort(names.begin(), names.end());
  return names;
}

Program collect_program(const std::vector<ast::File>& files, const std::vector<bool>& root,
                        Diagnostics& out) {
  Collection collection(out);
  for (std::size_t i = 0; i < files.size(); ++i) collection.file(files[i], root[i]);
  return collection.finish();
}

}  // namespace pw
