// Renders pictures of graphs: DOT, SVG, PNG, PDF, one self-contained HTML page, and a text outline.
// Every picture states how much of the graph it shows. The same input gives the same bytes.
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

/// The graph after a pass; the first version is the input.
struct Version {
  std::string pass;
  Graph graph;
};

/// A near miss of a rule in the last version, and the reason.
struct PageMiss {
  std::string rule, code, message, help;
  int matched = 0;            ///< pattern nodes matched before the failure
  std::size_t size = 0;       ///< number of pattern nodes
  NodeId at;                  ///< where the match failed; may be invalid
  std::vector<NodeId> nodes;  ///< nodes matched, without `at`
};
/// The nearest misses of each node. `why_none` gives the reason if no search took place.
struct PageMisses {
  std::vector<PageMiss> all;
  std::string why_none;
};

struct VizInput {
  std::vector<Version> versions =
      {};  ///< at least one; copies of one graph as it was rewritten, so that ids agree
  const StitchedGraph* pieces = nullptr;  ///< pieces of the last version
  const Plan* plan = nullptr;
  const Journal* journal = nullptr;
  const RuleSet* rules = nullptr;  ///< for locations of rules in the journal
  const std::vector<PassStats>* tried =
      nullptr;  ///< with the journal, where counted: what each rule was tried at
  const std::vector<NamedRewrite>* named_journal =
      nullptr;  ///< instead of the journal, for versions that were read from files
  const PageMisses* misses = nullptr;
  const Report* report =
      nullptr;  ///< the page shows its verdict on top and each section as a separate tab
  bool related =
      true;  ///< false: graphs read from files (in one context), whose nodes match_graphs finds
};

enum class Collapse : std::uint8_t {
  automatic,  ///< pieces if available, otherwise layers, otherwise runs between splitting ops
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
  std::optional<std::size_t> version = {};  ///< version to draw; the last if absent
  std::optional<std::size_t> against = {};  ///< earlier version to mark differences against
  std::size_t most_boxes = 600;             ///< above this, whole pieces or layers become one box
  int deadline_ms = 10'000;                 ///< for dot; after it the built-in layout is used
  std::size_t most_page_nodes = 1'000'000;  ///< limit for a page; larger graphs are an error
  bool color = false;                       ///< for the outline
  View view = View::automatic;
  /// Colors the nodes of a page or picture; a text only mentions it.
  const Overlay* overlay = nullptr;
  StageProgress progress = {};  ///< reports progress of the picture
};

Result<std::string> render_dot(const VizInput& input, const VizOptions& options = {});
Result<std::string> render_svg(const VizInput& input, const VizOptions& options = {});
Result<std::string> render_png(const VizInput& input, const VizOptions& options = {});
Result<std::string> render_pdf(const VizInput& input, const VizOptions& options = {});
Result<std::string> render_outline(const VizInput& input, const VizOptions& options = {});
/// Renders all versions as one page with a timeline; ignores `version` and `against`.
Result<std::string> render_html(const VizInput& input, const VizOptions& options = {});
Result<std::string> render_markdown(const VizInput& input, const VizOptions& options = {});
/// Renders for google-ai-edge/model-explorer: the versions as one collection, or the chosen version
/// and its counterpart.
Result<std::string> render_model_explorer(const VizInput& input, const VizOptions& options = {});
/// Renders a mapping file for two such graphs side by side: node ids on the left to those on the
/// right, and replaced nodes to their replacements.
Result<std::string> render_model_explorer_sync(const VizInput& input,
                                               const VizOptions& options = {});
/// Renders by extension: .dot .gv .svg .png .pdf .html .htm .txt .md .me.json .sync.json. Fails on
/// any other, and lists these.
Result<std::string> render_as(const std::string& path, const VizInput& input,
                              const VizOptions& options = {});

}  // namespace pw
