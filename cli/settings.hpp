// Options that configuration files may set too.
#pragma once

#include <string>
#include <utility>

#include <CLI/CLI.hpp>

namespace pw::cli {

/// Adds a flag.
inline CLI::Option* add_switch(CLI::App& app, std::string names, bool& to, std::string help) {
  return app.add_flag(std::move(names), to, std::move(help))->configurable();
}
template <class Value>
CLI::Option* add_setting(CLI::App& app, std::string names, Value& to, std::string help) {
  return app.add_option(std::move(names), to, std::move(help))->configurable();
}
/// Adds an option whose help shows its default.
template <class Value>
CLI::Option* add_default(CLI::App& app, std::string names, Value& to, std::string help) {
  return add_setting(app, std::move(names), to, std::move(help))->capture_default_str();
}
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

/// Adds the path of one run's file, which a configuration file cannot set.
template <class Value>
CLI::Option* add_file(CLI::App& app, std::string names, Value& to, std::string help) {
  return app.add_option(std::move(names), to, std::move(help))->type_name("FILE");
}

}  // namespace pw::cli
