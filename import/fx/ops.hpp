// The table from FX targets to ops of the library: data, and a parser of its one-line parameter
// lists.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/diagnostic.hpp"
#include "graph/foreign.hpp"

namespace pw::fx {

class Emitter;
struct KnownCall;
struct Bound;
struct Site;
struct Wanted;
using Outputs = std::vector<Wanted>;
using Results = std::vector<ValueId>;
using Applied = Result<std::optional<Results>>;
/// Converts a call by one row of the table; nothing if the row does not apply.
using Conversion = Applied(const KnownCall& call);

/// Translation that needs more than an emitter, by KnownCalls.
enum class Special : std::uint8_t {
  none,
  size,  ///< a dim, not a value
  as_strided,
  shard_rows,  ///< of a group that only other calls name
  foreign      ///< an item of a rule file
};

struct Slot {
  enum class Use : std::uint8_t { operand, attribute, buffer, none, ignored } use = Use::ignored;
  std::vector<std::string_view> names;  ///< names in PyTorch's versions
  std::string_view to;                  ///< the library's name for it
  int result = -1;  ///< the library's result that is its new contents, if it is written
  std::optional<std::string_view> default_text;
  bool stated = false;  ///< an earlier item has another default, so a call must state it
};

struct Mapping {
  std::string_view target;  ///< without "torch.ops." and ".default"
  std::string_view op;
  std::vector<Slot> parameters;   ///< in the order of the target's schema
  Conversion* convert = nullptr;  ///< what the target needs beyond renaming its arguments
  Special special = Special::none;
  bool copies = false;  ///< what it returns never shares memory with what it is given
  const ForeignOp* foreign = nullptr;  ///< of Special::foreign
  /// Returns the index of the first result that is an argument's contents; nothing if it writes
  /// none.
  [[nodiscard]] std::optional<std::size_t> first_written() const;
};

/// Table of mappings, parsed on demand: a graph calls a few of a thousand targets.
class Table {
 public:
  /// Creates a table. `foreign`: the items of rule files, which precede the rows of the table; may
  /// be null, and must outlive it.
  explicit Table(const ForeignOps* foreign = nullptr) : foreign_(foreign) {}
  /// Adds an item, which the table keeps.
  const std::vector<Mapping>* add(std::shared_ptr<const ForeignOp> op);
  /// Returns the mappings of a target, in order of preference; the first whose conditions hold
  /// applies. Null if there are none.
  [[nodiscard]] const std::vector<Mapping>* find(std::string_view target);
  /// Returns all targets with rows.
  [[nodiscard]] std::set<std::string> targets() const;

 private:
  std::vector<Mapping>& rows_of(std::string_view target);

  const ForeignOps* foreign_;
  std::vector<std::shared_ptr<const ForeignOp>> declared_;          ///< that mappings refer to
  std::unordered_map<std::string, std::vector<Mapping>> mappings_;  ///< of the targets looked up
};

}  // namespace pw::fx
