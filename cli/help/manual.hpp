// Manual pages (man(7)) of a program, made from its option tables.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace pw::cli {

struct ManualPage {
  std::string name;  ///< "pwr-run"; its file is NAME.1
  std::string text;
};

/// Returns a page for the program and one for each command, with its subcommands as sections.
std::vector<ManualPage> manual_pages(const CLI::App& program);

}  // namespace pw::cli
