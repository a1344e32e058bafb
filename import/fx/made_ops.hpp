// The ops of the library that torch's calls become. For targets whose ops no rule names, a graph
// need not state what they do.
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

  /// Returns the ops made by calls of any target: numbers as tensors, conversions of operands, and
  /// the like.
  static const Names& anywhere();
  /// Returns the further ops made by calls of a target, such as "torch.ops.aten.mm.default".
  /// Nothing if the table does not restrict them.
  [[nodiscard]] std::optional<Names> operator()(std::string_view target) const;

 private:
  std::unique_ptr<Table> table_;
};

}  // namespace pw::fx
