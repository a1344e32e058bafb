#include "cli/command_text.hpp"

#include <algorithm>
#include <string_view>

#include "base/characters.hpp"
#include "base/io/shown_path.hpp"

namespace pw::cli {
namespace {

/// Returns 0 if it is not an output option, 1 if it contains its value, 2 if the value follows.
int output_option(const std::string& argument) {
  for (const std::string_view option : {"-o", "--output", "--report", "--save", "--dump"}) {
    if (argument == option) return 2;
    const bool joined = option == "-o"
                            ? argument.size() > 2 && argument[2] != '-'
                            : argument.size() > option.size() && argument[option.size()] == '=';
    if (joined && argument.compare(0, option.size(), option) == 0) return 1;
  }
  return 0;
}

/// `--steps=/tmp/a.steps` contains a path too.
std::string without_folders(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos || argument.compare(0, 2, "--") != 0) return shown_path(argument);
  return argument.substr(0, equals + 1) + shown_path(argument.substr(equals + 1));
}

std::string quoted(const std::string& argument) {
  const bool plain = !argument.empty() && std::all_of(argument.begin(), argument.end(), [](char c) {
    return is_letter_or_digit(c) ||
           std::string_view("-_./=,:+@%").find(c) != std::string_view::npos;
  });
  if (plain) return argument;
  std::string out = "'";
  for (const char c : argument) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string shown_command(const std::string& program, const std::vector<std::string>& arguments) {
  std::string out = program;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const int output = output_option(arguments[i]);
    if (output == 0) out += " " + quoted(without_folders(arguments[i]));
    if (output == 2) ++i;
  }
  return out;
}

std::string next_command(const std::string& program, const std::vector<std::string>& arguments) {
  std::string out = program;
  for (const std::string& argument : arguments) out += " " + quoted(argument);
  return out;
}

}  // namespace pw::cli
