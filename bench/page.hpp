// Result pages with a section for each measured processor or device.
#pragma once

#include <string>

#include "base/diagnostic.hpp"

namespace pw::bench {

/// Replaces the section of this name, a processor or a device; other sections stay. Equal to
/// write_section of peers/environment.py.
Status write_section(const std::string& path, const std::string& title, const std::string& section,
                     const std::string& lines);

}  // namespace pw::bench
