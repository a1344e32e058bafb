// Turns items of the tree into lines and blocks; private to the formatter's .cpp files.
#pragma once

#include "dsl/syntax/layout.hpp"

namespace pw {

/// Properties of the source that the printers need: the spelling of numbers, and what was on one
/// line.
struct FormatContext {
  const SourceMap& sources;
  std::string_view text;
};

Layout format_item(const FormatContext& context, const ast::OpItem& op);
Layout format_item(const FormatContext& context, const ast::ForeignItem& item);
Layout format_item(const FormatContext& context, const ast::GraphItem& graph);
Layout format_item(const FormatContext& context, const ast::Test& test);
Layout format_item(const FormatContext& context, const ast::Pass& pass);
Layout format_item(const FormatContext& context, const ast::Pipeline& pipeline);
Layout format_item(const FormatContext& context, const ast::Split& split);
Layout format_item(const FormatContext& context, const ast::Explore& explore);
Layout format_item(const FormatContext& context, const ast::Capture& capture);

std::vector<Layout> statement_lines(const FormatContext& context,
                                    const std::vector<Statement>& statements);
std::string comma_separated(const std::vector<std::string>& parts);
std::string comma_separated(const std::vector<std::pair<std::string, Span>>& parts);

}  // namespace pw
