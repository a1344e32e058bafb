// Private to the importer: the names that a function reads.
#pragma once

#include <optional>
#include <string_view>

#include "import/fx/emit/names.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {

/// Names that some expression of a function reads. Few dumps need them: only results of unknown ops
/// may be other than tensors. Collected by the first query.
class ReadNames {
 public:
  /// Creates a set; the function must outlive it.
  explicit ReadNames(const Function& function) : function_(function) {}
  [[nodiscard]] bool contains(std::string_view name) const {
    if (!names_) {
      names_.emplace();
      for (const Statement& s : function_.statements) add(s.value);
    }
    return names_->contains(name);
  }

 private:
  void add(const Expr& e) const {
    if (e.kind == Expr::Kind::name) names_->insert(e.text);
    for (const Expr& arg : e.args) add(arg);
  }

  const Function& function_;
  mutable std::optional<WordSet> names_;
};

}  // namespace pw::fx
