// Extracts the tensors of a graph's file into a separate file.
#pragma once

#include "pipeline/load.hpp"

namespace pw {

/// Writes a safetensors file of a PT2 archive's tensors, by input name. Fails with PW1274 if the
/// source is not an archive, or if an input's contents cannot be read.
Status save_weights(const GraphSource& source, const std::string& path);

}  // namespace pw
