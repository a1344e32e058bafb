// What ops of the library calls of torch's become: of those that are none of a rule's business a
// graph need not say what they do.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "graph/context.hpp"

namespace pw::fx {

class Table;

class MadeOps {
 public:
  explicit MadeOps(const ContextPtr& context);
  ~MadeOps();
  MadeOps(const MadeOps&) = delete;
  MadeOps& operator=(const MadeOps&) = delete;

  using Names = std::set<std::string, std::less<>>;

  /// By calls of any target: numbers as tensors, operands brought to a type, and the like.
  static const Names& anywhere();
  /// Besides those, by calls of a target, as "torch.ops.aten.mm.default". Nothing where the table
  /// does not tell: any.
  [[nodiscard]] std::optional<Names> operator()(std::string_view target) const;

 private:
  std::unique_ptr<Table> table_;
};

}  // namespace pw::fx
