// The language's entry points: parse, check, load, format, and graph texts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// Parses a text to a tree. Reports all syntax errors of the file at once, at most one an item.
Result<ast::File> parse_file(SourceMap& sources, SourceId source);
/// Returns the canonical layout of a file, comments kept. format(parse(format(x))) == format(x).
std::string format_file(const ast::File& file, const SourceMap& sources);

struct LoadOptions {
  bool library = true;  ///< load the embedded ops (rules/ops) first
  /// Texts that replace those of files, by real path: unsaved buffers of an editor.
  const std::map<std::string, std::string>* unsaved = nullptr;
};
/// Reads files (a path, or "-r llm": a library name), follows `use`, declares ops into context.ops,
/// checks everything. Several diagnostics are collected over all files. Warnings are in
/// RuleSet::warnings.
Result<RuleSet> load_rules(const ContextPtr& context, const std::vector<std::string>& paths,
                           LoadOptions options = {});
/// Loads texts held in memory, for tests and bindings: (name, text).
Result<RuleSet> load_rule_texts(const ContextPtr& context,
                                const std::vector<std::pair<std::string, std::string>>& texts,
                                LoadOptions options = {});
/// Declares the embedded op library into context.ops (once).
Status load_op_library(const ContextPtr& context);

/// Parses .pwg text to a graph.
Result<Graph> parse_graph(const ContextPtr& context, std::string_view text,
                          const std::string& file);
Result<Graph> build_graph(const ContextPtr& context, const ast::GraphItem& item);
/// Parses one op declaration, for graph.json.
Result<Op> parse_op(Context& context, std::string_view text);
/// Loads any graph file by its content: .json, .pwg. (FX dumps are imported, see import/fx/fx.hpp.)
Result<Graph> load_graph(const ContextPtr& context, const std::string& path);

}  // namespace pw
