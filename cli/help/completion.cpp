#include "cli/help/completion.hpp"

#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/option_table.hpp"

namespace pw::cli {
namespace {

std::vector<std::string> names_of(const OptionRow& row) {
  std::vector<std::string> out;
  if (!row.long_name.empty()) out.push_back("--" + row.long_name);
  if (!row.short_name.empty()) out.push_back("-" + row.short_name);
  return out;
}

/// Single quotes may contain anything except single quotes.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string words(const std::vector<std::string>& all) {
  return fmt::format("{}", fmt::join(all, " "));
}

// ---- bash

/// Returns what follows an option: "file …", "folder", "words …", "text"; nothing for a flag. Files
/// may be accompanied by words.
std::string bash_values(const OptionRow& row) {
  switch (row.kind) {
    case ValueKind::none: return "";
    case ValueKind::text: return "text";
    case ValueKind::choice: return "words " + words(row.choices);
    case ValueKind::file: return row.choices.empty() ? "file" : "file " + words(row.choices);
    case ValueKind::folder: return "folder";
  }
  return "";
}

/// Returns a function that prints, for "COMMAND|--option", what may follow it. Options of the
/// program come last: they apply to every command without an option of that name.
std::string bash_value_table(const std::string& function, const CLI::App& program) {
  std::map<std::string, std::string> patterns;  // by offered values
  std::string whole;
  for (const CommandRow& command : command_rows(program)) {
    for (const OptionRow& row : option_rows(*command.command)) {
      for (const std::string& name : names_of(row)) {
        const std::string values = bash_values(row);
        std::string& at = command.path.empty() ? whole : patterns[values];
        if (command.path.empty())
          at += fmt::format("    *'|{}') echo '{}' ;;\n", name, values);
        else
          at += fmt::format("{}'{}|{}'", at.empty() ? "" : "|", joined(command.path), name);
      }
    }
  }
  std::string out = function + "() {\n  case $1 in\n";
  for (const auto& [values, pattern] : patterns)
    out += "    " + pattern + ") echo '" + values + "' ;;\n";
  return out + whole + "  esac\n}\n";
}

/// Returns a function that prints the words allowed after a command: subcommands, then options.
std::string bash_word_table(const std::string& function, const CLI::App& program) {
  std::vector<std::string> everywhere;
  for (const OptionRow& row : option_rows(program))
    for (const std::string& name : names_of(row)) everywhere.push_back(name);
  std::string out = function + "() {\n  case $1 in\n";
  for (const CommandRow& command : command_rows(program)) {
    std::vector<std::string> options;
    for (const OptionRow& row : option_rows(*command.command))
      for (const std::string& name : names_of(row)) options.push_back(name);
    if (!command.path.empty()) options.insert(options.end(), everywhere.begin(), everywhere.end());
    std::vector<std::string> arguments = names_below(*command.command);
    for (const OptionRow& row : positional_rows(*command.command))
      arguments.insert(arguments.end(), row.choices.begin(), row.choices.end());
    out += fmt::format("    '{}') commands='{}' arguments='{}' options='{}' ;;\n",
                       joined(command.path), words(names_below(*command.command)), words(arguments),
                       words(options));
  }
  return out + "  esac\n}\n";
}

/// @ is a placeholder for the program's name. readline splits `--option=value` into three words.
constexpr const char* kBash = R"bash(
_@() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path= i
  local commands arguments options values word
  COMPREPLY=()
  _@_words ''
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    case $word in
      -*)
        values=$(_@_values "$path|$word")
        [[ ${COMP_WORDS[i+1]} == '=' ]] && { ((i += 2)); continue; }
        [[ -n $values ]] && ((++i))
        ;;
      *)
        if [[ " $commands " == *" $word "* ]]; then
          path=${path:+$path }$word
          _@_words "$path"
        fi
        ;;
    esac
  done
  if [[ $current == '=' ]]; then
    current=
  elif [[ $before == '=' ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  values=
  [[ $before == -* ]] && values=$(_@_values "$path|$before")
  case $values in
    words\ *) COMPREPLY=($(compgen -W "${values#words }" -- "$current")) ;;
    file*) COMPREPLY=($(compgen -W "${values#file}" -- "$current") $(compgen -f -- "$current")) ;;
    folder) COMPREPLY=($(compgen -d -- "$current")) ;;
    text) ;;
    *)
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
      elif [[ -n $arguments ]]; then
        COMPREPLY=($(compgen -W "$arguments" -- "$current"))
      else
        COMPREPLY=($(compgen -f -- "$current"))
      fi
      ;;
  esac
}
complete -o filenames -F _@ @
)bash";

std::string for_program(std::string text, const std::string& name) {
  for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at))
    text.replace(at, 1, name);
  return text;
}

std::string bash_script(const CLI::App& program) {
  const std::string& name = program.get_name();
  return "# Completion of " + name + " for bash, made by the program from its option tables.\n" +
         bash_word_table("_" + name + "_words", program) +
         bash_value_table("_" + name + "_values", program) + for_program(kBash, name).substr(1);
}

// ---- zsh

/// Escapes brackets and colons, which are special in a specification of _arguments.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_values(const OptionRow& row) {
  switch (row.kind) {
    case ValueKind::none: return "";
    case ValueKind::text: return ":" + zsh_text(row.value) + ":";
    case ValueKind::choice: return ":value:(" + words(row.choices) + ")";
    case ValueKind::file: return ":file:_files";
    case ValueKind::folder: return ":folder:_files -/";
  }
  return "";
}

std::string zsh_options(const CLI::App& command) {
  std::string out;
  for (const OptionRow& row : option_rows(command)) {
    for (const std::string& name : names_of(row)) {
      const bool joins = row.kind != ValueKind::none && name.starts_with("--");
      out += " \\\n        " +
             in_quotes(fmt::format("{}{}{}[{}]{}", row.repeatable ? "*" : "", name,
                                   joins ? "=" : "", zsh_text(row.description), zsh_values(row)));
    }
  }
  return out;
}

std::string zsh_arguments(const CLI::App& command) {
  for (const OptionRow& row : positional_rows(command))
    if (row.kind == ValueKind::choice)
      return in_quotes("1:" + row.long_name + ":(" + words(row.choices) + ")");
  const std::vector<std::string> below = names_below(command);
  return in_quotes(below.empty() ? "*:file:_files" : "1:command:(" + words(below) + ")");
}

std::string zsh_script(const CLI::App& program) {
  const std::string& name = program.get_name();
  std::string out = "#compdef " + name + "\n_" + name + "() {\n  local line state\n";
  const std::vector<std::string> commands = names_below(program);
  if (commands.empty())
    return out + "  _arguments " + zsh_arguments(program) + zsh_options(program) + "\n}\n_" + name +
           " \"$@\"\n";
  out += "  _arguments -C '1:command:->command' '*::argument:->argument'" + zsh_options(program) +
         "\n  case $state in\n    command)\n      local -a commands=(";
  for (const CommandRow& row : command_rows(program))
    if (row.path.size() == 1)
      out += "\n        " +
             in_quotes(row.path.front() + ":" + zsh_text(row.command->get_description()));
  out += "\n      )\n      _describe command commands ;;\n    argument)\n      case $line[1] in";
  for (const CommandRow& row : command_rows(program))
    if (row.path.size() == 1)
      out += "\n      " + row.path.front() + ") _arguments " + zsh_arguments(*row.command) +
             zsh_options(*row.command) + zsh_options(program) + " ;;";
  return out + "\n      esac ;;\n  esac\n}\n_" + name + " \"$@\"\n";
}

// ---- fish

/// Returns the condition under which a command's words are offered.
std::string fish_condition(const CommandRow& row) {
  if (row.path.empty()) return {};
  std::string out = "__fish_seen_subcommand_from " + row.path.front();
  for (std::size_t i = 1; i < row.path.size(); ++i)
    out += "; and __fish_seen_subcommand_from " + row.path[i];
  return " -n " + in_quotes(out);
}

std::string fish_values(const OptionRow& row) {
  switch (row.kind) {
    case ValueKind::none: return "";
    case ValueKind::text: return " -x";
    case ValueKind::choice: return " -x -a " + in_quotes(words(row.choices));
    case ValueKind::file:
      return row.choices.empty() ? " -r -F" : " -r -F -a " + in_quotes(words(row.choices));
    case ValueKind::folder: return " -x -a '(__fish_complete_directories)'";
  }
  return "";
}

std::string fish_command(const std::string& name, const CommandRow& row) {
  const std::string condition = fish_condition(row);
  std::string out;
  for (const OptionRow& option : option_rows(*row.command)) {
    out += "complete -c " + name + condition;
    if (!option.long_name.empty()) out += " -l " + option.long_name;
    if (!option.short_name.empty()) out += " -s " + option.short_name;
    out += fish_values(option) + " -d " + in_quotes(option.description) + "\n";
  }
  for (const OptionRow& argument : positional_rows(*row.command))
    if (!argument.choices.empty())
      out += "complete -c " + name + condition + " -a " + in_quotes(words(argument.choices)) + "\n";
  return out;
}

/// Offers the subcommands of a command until one of them is given.
std::string fish_below(const std::string& name, const CommandRow& row) {
  const std::vector<std::string> below = names_below(*row.command);
  if (below.empty()) return {};
  std::string condition = "not __fish_seen_subcommand_from " + words(below);
  if (!row.path.empty())
    condition = "__fish_seen_subcommand_from " + row.path.back() + "; and " + condition;
  std::string out;
  for (const CommandRow& command : command_rows(*row.command))
    if (command.path.size() == 1)
      out += "complete -c " + name + " -f -n " + in_quotes(condition) + " -a " +
             command.path.front() + " -d " + in_quotes(command.command->get_description()) + "\n";
  return out;
}

std::string fish_script(const CLI::App& program) {
  const std::string& name = program.get_name();
  std::string out =
      "# Completion of " + name + " for fish, made by the program from its option tables.\n";
  for (const CommandRow& row : command_rows(program))
    out += fish_below(name, row) + fish_command(name, row);
  return out;
}

}  // namespace

std::string completion_script(const CLI::App& program, std::string_view shell) {
  if (shell == "zsh") return zsh_script(program);
  return shell == "fish" ? fish_script(program) : bash_script(program);
}

}  // namespace pw::cli
