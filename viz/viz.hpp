// Pictures of graphs: DOT, SVG, PNG, PDF, one self-contained HTML page, and a text outline. Reads
// the data of a run; every picture says how much of the graph it shows. The same input gives the
// same bytes.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "rewriter/strategies/journal.hpp"
#include "splitter/plan.hpp"
#include "viz/views.hpp"

namespace pw {

struct NamedRewrite;
struct PassStats;
struct Report;

/// The graph after a pass; the first one is the input.
struct Version {
  std::string pass;
  Graph graph;
};

/// A rule that nearly matched the last version: why it is not applied there.
struct PageMiss {
  std::string rule, code, message, help;
  int matched = 0;            ///< nodes of its pattern, before it stopped
  std::size_t size = 0;       ///< nodes of its pattern
  NodeId at;                  ///< where it stopped; may be invalid
  std::vector<NodeId> nodes;  ///< that it matched, `at` aside
};
/// Those nearest to a match, for each node. `why_none` says why there are none, where nobody
/// looked.
struct PageMisses {
  std::vector<PageMiss> all;
  std::string why_none;
};

struct VizInput {
  std::vector<Version> versions =
      {};  ///< at least one; copies of one graph as it was rewritten, so that ids agree
  const StitchedGraph* pieces = nullptr;  ///< of the last version
  const Plan* plan = nullptr;
  const Journal* journal = nullptr;
  const RuleSet* rules = nullptr;  ///< with the journal: where the rules are
  const std::vector<PassStats>* tried =
      nullptr;  ///< with the journal, where counted: what each rule was tried at
  const std::vector<NamedRewrite>* named_journal =
      nullptr;  ///< instead of the journal, for versions that were read from files
  const PageMisses* misses = nullptr;
  const Report* report =
      nullptr;  ///< the page shows its verdict on top and each section as a tab of its own
  bool related =
      true;  ///< false: graphs read from files (in one context), whose nodes match_graphs finds
};

enum class Collapse : std::uint8_t {
  automatic,  ///< pieces if there are, else layers, else the runs between splitting ops
  none,
  pieces,
  layers,
};
[[nodiscard]] std::optional<Collapse> collapse_named(
    std::string_view name);  ///< "auto" and the names above

/// A number for some nodes, by the name of the node or of one of its values.
struct Overlay {
  std::string title;
  std::map<std::string, double> numbers;
};

struct VizOptions {
  Collapse collapse = Collapse::automatic;
  std::optional<std::size_t> version = {};  ///< which one; absent: the last
  std::optional<std::size_t> against = {};  ///< marks what differs from this earlier version
  std::size_t most_boxes = 600;             ///< above it, whole pieces or layers become one box
  int deadline_ms = 10'000;                 ///< of dot, after which a layout of our own is used
  std::size_t most_page_nodes = 1'000'000;  ///< of a page; more are an error
  bool color = false;                       ///< of the outline
  View view = View::automatic;
  /// Colours the nodes of a page or picture; a text says only what it is.
  const Overlay* overlay = nullptr;
  StageProgress progress = {};  ///< told while a picture is made
};

Result<std::string> render_dot(const VizInput& input, const VizOptions& options = {});
Result<std::string> render_svg(const VizInput& input, const VizOptions& options = {});
Result<std::string> render_png(const VizInput& input, const VizOptions& options = {});
Result<std::string> render_pdf(const VizInput& input, const VizOptions& options = {});
Result<std::string> render_outline(const VizInput& input, const VizOptions& options = {});
/// All versions in one page with a timeline; `version` and `against` are not read.
Result<std::string> render_html(const VizInput& input, const VizOptions& options = {});
Result<std::string> render_markdown(const VizInput& input, const VizOptions& options = {});
/// For google-ai-edge/model-explorer: the versions as graphs of one collection, or the chosen one
/// and what it is compared with.
Result<std::string> render_model_explorer(const VizInput& input, const VizOptions& options = {});
/// Its mapping file for two of these side by side: node ids on the left to those on the right, what
/// was replaced to what stands in its place.
Result<std::string> render_model_explorer_sync(const VizInput& input,
                                               const VizOptions& options = {});
/// By extension: .dot .gv .svg .png .pdf .html .htm .txt .md .me.json .sync.json; anything else is
/// an error that lists these.
Result<std::string> render_as(const std::string& path, const VizInput& input,
                              const VizOptions& options = {});

}  // namespace pw
