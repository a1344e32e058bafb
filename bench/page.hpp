// Pages of results with a section for each processor that measured.
#pragma once

#include <string>

#include "base/diagnostic.hpp"

namespace pw::bench {

/// Puts the lines below a heading that names the processor; what the page says of other processors
/// stays. As write_section of peers/environment.py.
Status write_section(const std::string& path, const std::string& title, const std::string& lines);

}  // namespace pw::bench
