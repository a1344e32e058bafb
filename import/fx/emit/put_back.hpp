// Private to the importer: the nodes that lead from a tensor to a view of it, and back.
#pragma once

#include "import/fx/emit/emitter.hpp"

namespace pw::fx {

/// Returns the number of elements; invalid if it is not a dim.
DimId count_of(Dims& dims, const Shape& shape);
/// Converts a value to the element type and extents of the tensor that it is written to.
Result<ValueId> fit(Emitter& emitter, ValueId value, ValueId like, const Site& site);
/// Takes one step from a base's contents to a view's.
Result<ValueId> derive_step(Emitter& emitter, ValueId value, const ViewStep& step,
                            const Site& site);
/// Returns the contents of the base after a write of `part` to the view that the step leads to;
/// `old`: those before, which some steps need. PW0516 if no node expresses it.
Result<ValueId> put_back_step(Emitter& emitter, const ViewStep& step, ValueId old, ValueId part,
                              const Site& site);
/// Replaces every stride-th element of an axis from `start` on.
Result<ValueId> put_back_strided(Emitter& emitter, ValueId old, ValueId part, std::int64_t axis,
                                 DimId start, std::int64_t stride, const Site& site);

}  // namespace pw::fx
