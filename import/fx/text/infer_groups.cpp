// A printed graph names weights by their modules, but not calls. A call that reads a weight belongs
// to the weight's module. The calls between two such calls are placed by their lines of source:
// RMSNorm, for example, reads its weight in its last line. All others belong to the module that
// encloses both. Linear in the expressions of the function.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "import/fx/text/ast.hpp"

namespace pw::fx {
namespace {

constexpr std::string_view kSelf = "self.";

std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

bool is_number(std::string_view step) {
  return !step.empty() && step.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Returns "layers.0.norm" for Dynamo's name "L_self_modules_layers_modules_0_modules_norm_
/// parameters_weight_"; empty for other names.
std::string path_in_name(std::string_view name) {
  constexpr std::string_view kModules = "_modules_";
  const std::size_t first = name.find(kModules);
  const std::size_t end = std::max(name.rfind("_parameters_") + 1, name.rfind("_buffers_") + 1);
  if (first == std::string_view::npos || end <= first + kModules.size()) return {};
  std::string out(name.substr(first + kModules.size(), end - 1 - first - kModules.size()));
  for (std::size_t at = 0; (at = out.find(kModules, at)) != std::string::npos;)
    out.replace(at, kModules.size(), ".");
  return out;
}

struct Weight {
  std::string module;
  bool buffer = false;  ///< layers may share it, so only its first reader is in the module
};
using Weights = std::map<std::string, Weight, std::less<>>;  // by value

/// Adds the modules of inputs in torch.export's signature: "p_a_w: PARAMETER target='a.w'", or
/// "arg=TensorArgument(name='p_a_w'), target='a.w'".
void add_signed(std::string_view signature, Weights& out) {
  constexpr std::string_view kTarget = "target='", kName = "name='";
  for (std::size_t at = signature.find(kTarget); at != std::string_view::npos;
       at = signature.find(kTarget, at + 1)) {
    const std::string_view path = signature.substr(
        at + kTarget.size(), signature.find('\'', at + kTarget.size()) - at - kTarget.size());
    const std::size_t begin = signature.rfind('\n', at) + 1;  // npos + 1 is 0
    const std::string_view line = signature.substr(begin, at - begin);
    const bool buffer = line.find("BUFFER") != std::string_view::npos;
    std::string_view name = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (const std::size_t old = line.rfind(kName); old != std::string_view::npos)
      name = line.substr(old + kName.size());
    name = name.substr(0, name.find_first_of("':"));
    if (!parent_of(path).empty()) out.emplace(name, Weight{std::string(parent_of(path)), buffer});
  }
}

/// Returns the module that encloses both.
std::string_view common(std::string_view a, std::string_view b) {
  std::size_t end = 0;
  for (std::size_t i = 0;; ++i) {
    const bool over_a = i == a.size(), over_b = i == b.size();
    if ((over_a || a[i] == '.') && (over_b || b[i] == '.')) end = i;
    if (over_a || over_b || a[i] != b[i]) break;
  }
  return a.substr(0, end);
}

/// Returns the module of a call between calls of two modules. After the last call of a layer it is
/// the layer, which ends with a call without weights, such as the residual addition.
std::string_view between(std::string_view a, std::string_view b) {
  const std::string_view both = common(a, b);
  for (std::size_t at = both.empty() ? 0 : both.size() + 1; at < a.size();) {
    const std::size_t end = std::min(a.find('.', at), a.size());
    if (is_number(a.substr(at, end - at))) return a.substr(0, end);
    at = end + 1;
  }
  return both;
}

struct SourceLine {
  std::string_view file;
  int line = 0;
};
SourceLine line_of(const Statement& s) {
  const std::string_view place = s.source;
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) return {};
  SourceLine out{place.substr(0, colon)};
  std::from_chars(place.data() + colon + 1, place.data() + place.size(), out.line);
  return out;
}

class Inference {
 public:
  Inference(Function& function, std::string_view signature) : function_(function) {
    add_signed(signature, weights_);
    for (const Parameter& p : function.parameters)
      if (std::string path = path_in_name(p.name); !path.empty())
        weights_.emplace(p.name,
                         Weight{std::move(path), p.name.find("_buffers_") != std::string::npos});
  }

  void run() {
    const std::size_t count = function_.statements.size();
    std::vector<std::string> found(count);
    for (std::size_t i = 0; i < count; ++i) found[i] = module_of(function_.statements[i]);
    for (std::size_t i = 0; i < count;) {
      std::size_t end = i;
      while (end < count && found[end].empty()) ++end;
      if (end < count) fill(found, i, end);
      i = std::max(end, i + 1);
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::string& group = function_.statements[i].group;
      if (found[i].empty()) continue;
      group = group.empty() ? std::move(found[i]) : group + "." + found[i];
    }
  }

 private:
  /// Returns the module of the weights that a statement reads; its results count as weights if it
  /// reads nothing else.
  std::string module_of(const Statement& s) {
    Read read;
    visit(s.value, read);
    if (!read.others && !read.module.empty())
      for (const Expr& target : s.targets)
        if (target.kind == Expr::Kind::name)
          weights_.insert_or_assign(target.text, Weight{read.module, !read.buffers.empty()});
    for (const std::string_view buffer : read.buffers) weights_.erase(weights_.find(buffer));
    return s.kind == Statement::Kind::return_ ? std::string() : read.module;
  }

  struct Read {
    std::string module;
    bool others = false;  // not only weights
    std::set<std::string_view> buffers = {};
  };
  void visit(const Expr& e, Read& read) const {
    if (e.kind == Expr::Kind::call && e.text.starts_with(kSelf)) {  // a module
      read.module = e.text.substr(kSelf.size());
      read.others = true;
      return;
    }
    if (e.kind == Expr::Kind::name && !e.text.starts_with("torch.")) {
      std::string_view module;
      if (e.text.starts_with(kSelf)) {
        module = parent_of(std::string_view(e.text).substr(kSelf.size()));
      } else if (const auto known = weights_.find(e.text); known != weights_.end()) {
        module = known->second.module;
        if (known->second.buffer) read.buffers.insert(e.text);
      }
      if (module.empty())
        read.others = true;
      else
        read.module = read.module.empty() ? module : common(read.module, module);
    }
    for (const Expr& part : e.args) visit(part, read);
  }

  /// Places the statements of a gap: at its beginning and end by their lines.
  void fill(std::vector<std::string>& found, std::size_t begin, std::size_t end) const {
    constexpr int kLines = 12;  // of a short forward()
    const std::string before = begin > 0 ? found[begin - 1] : "", after = found[end];
    const std::string source = begin > 0 ? function_.statements[begin - 1].source : "";
    while (begin < end && !source.empty() && function_.statements[begin].source == source)
      found[begin++] = before;
    const int last = line_of(function_.statements[end]).line;
    while (begin < end) {
      const SourceLine here = line_of(function_.statements[end - 1]),
                       next = line_of(function_.statements[end]);
      if (here.file.empty() || here.file != next.file || here.line > next.line ||
          last - here.line > kLines)
        break;
      found[--end] = after;
    }
    const std::string rest(between(before, after));
    for (; begin < end; ++begin) found[begin] = rest;
  }

  Function& function_;
  Weights weights_;
};

}  // namespace

void infer_groups(Function& function, std::string_view signature) {
  Inference(function, signature).run();
}

}  // namespace pw::fx
