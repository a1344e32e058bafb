// Extracts the tensors of a PT2 archive, as torch.export.save writes it, as a safetensors file.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace pw {

/// Returns parameters, buffers and constants under the names of the graph's inputs, row-major.
/// `file` names the archive in messages; `number` selects one of its models, from 1. Fails with
/// PW1274 for each input whose contents cannot be read: pickles, unsupported dtypes. For the
/// archive format see base/io/zip.hpp and import/pt2/pt2.hpp.
Result<std::string> safetensors_of_pt2(std::string_view archive, const std::string& file,
                                       std::size_t number = 0);

}  // namespace pw
