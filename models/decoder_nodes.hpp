// Internal to models/: adds the nodes of a decoder, and holds what all its parts read.
#pragma once

#include <string>
#include <vector>

#include "graph/node_maker.hpp"
#include "models/families.hpp"

namespace pw {

using Values = std::vector<ValueId>;

class DecoderNodes : public NodeMaker {
 public:
  /// Adds the inputs that every layer reads.
  DecoderNodes(const ContextPtr& context, const FamilyOptions& family_options,
               const ModelFamily& family, const ModelSizes& family_sizes);

  /// Returns the name of the group of all ranks; empty if there is one.
  [[nodiscard]] std::string group_of_ranks() const;
  /// Declares that all ranks hold the same contents: the input is not a part of a sharded product.
  ValueId everywhere(ValueId input);
  /// Returns the weight of an RMSNorm, plus one if the family stores it without.
  ValueId norm_weight(const std::string& name, std::int64_t width);
  ValueId constant(double value, DType dtype, const std::string& name);
  /// Returns the sum over all ranks.
  ValueId reduced(ValueId x, const std::string& name = "reduced");

  Values split(ValueId x, const Shape& widths, std::vector<std::string> names);
  ValueId scattered(ValueId x, ValueId from, std::int64_t axis, std::int64_t start,
                    std::int64_t end, const char* name);
  ValueId part(ValueId x, std::int64_t axis, std::int64_t start, std::int64_t end,
               const char* name);
  Shape rows(std::int64_t count, std::int64_t width) { return {tokens, dim(count), dim(width)}; }
  ValueId in_heads(ValueId x, std::int64_t count, std::int64_t width, const std::string& name);
  ValueId in_heads(ValueId x, std::int64_t count, const std::string& name) {
    return in_heads(x, count, sizes.head, name);
  }
  ValueId flat_rows(ValueId x, std::int64_t width, const std::string& name);
  ValueId transposed(ValueId x, const std::string& name);
  ValueId one_element(ValueId x, const std::string& name);

  const FamilyOptions& options;
  const ModelParts& parts;
  const ModelSizes& sizes;
  double eps;
  std::int64_t heads, kv_heads;  ///< of this rank
  std::int64_t turned;           ///< width of the part rotated by its position
  DimId tokens;
  ValueId ids, positions, cos_sin;
  std::string layer;  ///< name of the current layer
};

}  // namespace pw
