// Graphs of model families by their options, as `pwr generate` takes them.
#pragma once

#include "cli/session.hpp"

namespace pw::cli {

/// `llama --layers 2 --tp 2`; diagnoses what `pwr generate` would.
Graph generated(const Session& session, const std::string& options);

}  // namespace pw::cli
