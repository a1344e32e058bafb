#include "viz/formats/page_writer.hpp"

#include "viz/label.hpp"

namespace pw::viz {

std::string print(const Ints& numbers) {
  std::string out = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(numbers[i]);
  }
  return out + "]";
}

void PageWriter::put(const char* name, const std::string& json) {
  out_ += out_.empty() ? "{" : ",\n";
  out_ += "\"" + std::string(name) + "\":" + json;
}

ValueNumbers::ValueNumbers(const UnionGraph& graph, const Links& links, PageWriter& page)
    : graph_(graph), page_(page) {
  std::int64_t next = static_cast<std::int64_t>(links.inputs.size());
  for (const UnionNode& node : graph.nodes) {
    first_.push_back(next);
    next += static_cast<std::int64_t>(graph.graph_of(node).result_count(node.id));
  }
}

std::int64_t ValueNumbers::of(const Source& source, std::uint32_t version) {
  switch (source.kind) {
    case Source::Kind::none: return -1;
    case Source::Kind::input: return source.index;
    case Source::Kind::node: return first_[source.index] + source.result;
    case Source::Kind::literal:
      return -2 - page_.text(operand_text(graph_.versions[version]->graph, source.value));
  }
  return -1;
}

}  // namespace pw::viz
