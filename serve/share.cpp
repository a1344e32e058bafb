#include "serve/share.hpp"

#include "base/printable.hpp"
#include "base/utf8.hpp"

namespace pw::cli {
namespace {

constexpr std::string_view kRules = R"(// A rule is a pattern, =>, and its replacement.
// Edit the rule: the graph on the right updates.
rule add_norm {
  r = add(x, res)
  y = rms_norm(r, w){eps}
  =>
  y, r = fused_add_rms_norm(x, res, w){eps}
}

pipeline fuse { walk { add_norm } }
)";
constexpr std::string_view kGraph = R"(graph block {
  symbol n in 1..8192 tokens
  in x: bf16[n, 256], res: bf16[n, 256]
  in weight w: bf16[256], up: bf16[256, 512], down: bf16[512, 256], w2: bf16[256]
  r = add(x, res)
  h = rms_norm(r, w){eps = 1e-06}
  m = mm(silu(mm(h, up)), down)
  r2 = add(m, r)
  y = rms_norm(r2, w2){eps = 1e-06}
  out y, r2
}
)";

}  // namespace

Share example_share() {
  return {std::string(kRules), "", SharedGraph{"block.pwg", {}, std::string(kGraph)}};
}

bool is_text(std::string_view bytes) {
  return is_utf8(bytes) && bytes.find('\0') == std::string_view::npos;
}

bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 200 && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && printable(name) == name && is_text(name);
}

}  // namespace pw::cli
