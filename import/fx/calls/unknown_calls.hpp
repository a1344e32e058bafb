// Private to the importer: calls of unknown ops.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "import/fx/emit/emitter.hpp"
#include "import/fx/emit/versions.hpp"
#include "import/fx/read_names.hpp"
#include "import/fx/torch_schemas.hpp"

namespace pw::fx {

/// Arguments of a call that is kept unchanged.
struct Skeleton {
  std::vector<Value> operands;  ///< tensors, in order
  AttributeList attributes;
  std::vector<std::string> keywords;   ///< of each operand; empty for positional ones
  std::vector<std::size_t> positions;  ///< of each positional operand; these come first
  std::string text;                    ///< `%0, None, %1, mask = $mask`
  bool plain = true;                   ///< operands and attributes alone determine the call
};

/// Effect of an unknown call on its operands.
struct Unknown {
  std::optional<bool> functional;      ///< it writes none; nothing: as the dump is
  std::vector<std::string> arguments;  ///< it writes these only; empty: any tensor
  std::string why;                     ///< why the rows of its target do not apply; may be empty
};

/// Returns the schema of a target: that of the options, or PyTorch's.
[[nodiscard]] std::optional<Schema> schema_of(const FxOptions& options, std::string_view target);

/// Keeps calls as they are, in their place, as opaque nodes with the tensors that they may have
/// written as further results. Invariant: each write that a schema, the dump's form or a
/// convention states is one of the memory too; others are assumed, and reported.
class UnknownCalls : EmitterPart {
 public:
  /// Creates the calls of a dump. `typed`: it states the type of some input.
  UnknownCalls(Emitter& emitter, Versions& versions, const FxOptions& options,
               const ReadNames& read_names, bool typed)
      : EmitterPart(emitter),
        versions_(versions),
        memory_(versions.memory()),
        options_(options),
        read_names_(read_names),
        typed_(typed) {}

  /// Sets whether the dump is functionalised: calls then write nothing.
  void set_functional(bool functional) { functional_ = functional; }
  [[nodiscard]] bool functional() const { return functional_; }
  /// Sets whether calls without a schema have no effect either.
  void set_pure(bool pure) { pure_ = pure; }

  /// Returns the schema of a target, if it is known.
  [[nodiscard]] std::optional<Schema> schema(std::string_view target) const {
    return schema_of(options_, target);
  }
  /// Keeps a call.
  Result<Value> keep(std::string_view target, const Arguments& arguments, const Site& site,
                     const Unknown& unknown = {});
  /// Reports assumed writes, with the arguments of the first such call.
  void note_assumed_writes(FxReport& report);

 private:
  /// The result of a call: an operand, or nothing for its next result.
  using Returned = std::vector<std::optional<std::size_t>>;
  Returned returned_by(const std::optional<Schema>& schema, const Skeleton& call,
                       std::string_view target, const std::vector<std::size_t>& written,
                       const Site& site, Outputs& wanted);
  Value returned_value(const Returned& returned, const std::optional<Schema>& schema,
                       const Skeleton& call, const Results& results, std::string_view target);
  [[nodiscard]] Skeleton skeleton_of(const Arguments& arguments);
  void take_argument(Skeleton& out, const std::string& name, const Value& value, int depth);
  [[nodiscard]] std::vector<std::size_t> written_operands(const Skeleton& call,
                                                          std::string_view target,
                                                          const std::optional<Schema>& schema,
                                                          const Unknown& unknown) const;
  Outputs opaque_results(const Site& site) const;
  void make_symbolic(Outputs& wanted, std::string_view op, const Skeleton& call);
  std::optional<std::string> shared_operands(const Skeleton& call,
                                             const std::vector<std::size_t>& written) const;
  Result<OpId> opaque_op(std::string_view target, const std::optional<Schema>& schema);
  TensorId opaque_view(const Value& base, NodeId node, std::size_t result, std::string_view target);

  Versions& versions_;
  Memory& memory_;
  const FxOptions& options_;
  const ReadNames& read_names_;
  bool typed_;
  bool functional_ = false, pure_ = false;
  std::set<std::string> assumed_;  ///< ops whose writes nothing states
};

}  // namespace pw::fx
