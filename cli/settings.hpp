// Options that configuration files may set too.
#pragma once

#include <string>
#include <utility>

#include <CLI/CLI.hpp>

namespace pw::cli {

/// Adds an option; `placeholder` names its value in help.
template <class Value>
CLI::Option* add_setting(CLI::App& app, std::string names, Value& to,
                         const std::string& placeholder, std::string help) {
  return app.add_option(std::move(names), to, std::move(help))
      ->type_name(placeholder)
      ->configurable();
}
/// Adds an option whose help shows its default. Values that `valid` refuses are errors.
template <class Value>
CLI::Option* add_setting(CLI::App& app, std::string names, Value& to, const CLI::Validator& valid,
                         std::string help) {
  return app.add_option(std::move(names), to, std::move(help))
      ->check(valid)
      ->capture_default_str()
      ->configurable();
}

}  // namespace pw::cli
