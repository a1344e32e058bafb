// Result pages with a section for each measured processor.
#pragma once

#include <string>

#include "base/diagnostic.hpp"

namespace pw::bench {

/// Replaces the section under the heading of this processor; other sections stay. Equal to
/// write_section of peers/environment.py.
Status write_section(const std::string& path, const std::string& title, const std::string& lines);

}  // namespace pw::bench
