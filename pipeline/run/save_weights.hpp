// Writes the tensors that a graph's file holds as a file of their own.
#pragma once

#include "pipeline/load.hpp"

namespace pw {

/// Of a PT2 archive: a safetensors file of the names of the graph's inputs. PW1274 where the source
/// is no archive, or an input's contents cannot be read.
Status save_weights(const GraphSource& source, const std::string& path);

}  // namespace pw
