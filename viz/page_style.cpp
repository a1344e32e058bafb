// Exports kPageStyle: light and dark, in the colours of Okabe and Ito, each with a dash or a glyph
// beside it.
#include "viz/page.hpp"

namespace pw::viz {

const std::string_view kPageStyle = R"css(
:root { color-scheme: light dark; --ink: #1c1c1c; --soft: #5c5c5c; --paper: #ffffff; --panel: #f6f6f5; --line: #cfcfcf;
  --node: #ffffff; --product: #e6f1f8; --splitting: #fbeedb; --io: #f2f2f2; --captured: #e5f5ef; --stripe1: #e2e2e2; --stripe2: #f6f6f6; --layer: #f7f7f7;
  --added: #0072b2; --removed: #d55e00; --changed: #b87e00; --matched: #a8528a; --green: #009e73; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e4e4; --soft: #a5a5a5; --paper: #15171a; --panel: #1d2024; --line: #43474c;
  --node: #22262b; --product: #1c3040; --splitting: #3c2f19; --io: #2a2d31; --captured: #14302a; --stripe1: #2b2d30; --stripe2: #202225; --layer: #1f2226;
  --added: #56b4e9; --removed: #ff8a3d; --changed: #e9b949; --matched: #e08fc0; --green: #2cc295; } }
* { box-sizing: border-box; }
body { margin: 0; font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; color: var(--ink); background: var(--paper); }
header { padding: .6rem 1rem .2rem; } h1 { font-size: 1.25rem; margin: 0; } header p { margin: .1rem 0 .4rem; color: var(--soft); } h2 { font-size: 1rem; margin: 1rem 0 .3rem; }
main { display: grid; grid-template-columns: minmax(0, 1fr) 24rem; height: 76vh; border-top: 1px solid var(--line); border-bottom: 1px solid var(--line); }
@media (max-width: 55rem) { main { grid-template-columns: 1fr; height: auto; } #picture { height: 70vh; } }
#picture { position: relative; overflow: hidden; cursor: grab; touch-action: none; } #picture.drag { cursor: grabbing; } #picture > svg { width: 100%; height: 100%; display: block; }
aside { overflow: auto; padding: .2rem 1rem 1rem; background: var(--panel); border-left: 1px solid var(--line); }
button, input { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--line); border-radius: 4px; padding: .15rem .5rem; } button { cursor: pointer; }
button:focus-visible, input:focus-visible, tr:focus-visible, g:focus-visible { outline: 2px solid var(--added); outline-offset: 1px; }
.zoom { position: absolute; right: .5rem; top: .5rem; display: flex; gap: .25rem; }
.problem { padding: 1rem; color: var(--removed); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; } th, td { text-align: left; padding: .12rem .45rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; } tbody tr[tabindex] { cursor: pointer; } tr.now { background: color-mix(in srgb, var(--added) 18%, transparent); font-weight: 600; } tr.idle { color: var(--soft); }
#table { padding: .2rem 1rem 3rem; } #table .scroll { max-height: 60vh; overflow: auto; } #table th { position: sticky; top: 0; background: var(--panel); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .7rem; margin: .3rem 0; } dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; } pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem .9rem; padding: 0; margin: .4rem 0; list-style: none; } .legend b { display: inline-block; min-width: 1rem; text-align: center; }
.added-ink { color: var(--added); } .removed-ink { color: var(--removed); } .changed-ink { color: var(--changed); } .matched-ink { color: var(--matched); }
.swatch { display: inline-block; width: 1.1rem; height: .8rem; border: 1px solid var(--line); vertical-align: -1px; } .swatch.captured { background: var(--captured); border: 2px solid var(--green); }
.swatch.eager { background: repeating-linear-gradient(90deg, var(--stripe1) 0 4px, var(--stripe2) 4px 8px); }
svg text { fill: var(--ink); } svg .graph > polygon { fill: none; stroke: none; } svg .edge path { stroke: var(--soft); } svg .edge polygon { stroke: var(--soft); fill: var(--soft); }
svg .box polygon, svg .box path, svg .box ellipse, svg .box polyline { stroke: var(--soft); fill: var(--node); } svg .box.product polygon { fill: var(--product); } svg .box.splitting polygon { fill: var(--splitting); }
svg .box.input ellipse, svg .box.output ellipse { fill: var(--io); }
svg .captured polygon { fill: var(--captured); stroke: var(--green); } svg .layer path, svg .run path { fill: var(--layer); stroke: var(--line); }
svg .eager polygon { stroke: none; } svg .eager polygon[fill="#e2e2e2"] { fill: var(--stripe1); } svg .eager polygon[fill="#f6f6f6"] { fill: var(--stripe2); } svg .eager polygon[fill="none"] { stroke: var(--line); }
svg .box { cursor: pointer; } svg .off { opacity: .07; pointer-events: none; } svg .edge.off { opacity: .03; }
svg .st-added polygon, svg .st-added path, svg .st-added ellipse { stroke: var(--added); stroke-width: 2.2; }
svg .st-removed polygon, svg .st-removed path, svg .st-removed ellipse { stroke: var(--removed); stroke-width: 2; stroke-dasharray: 5 3; } svg .st-removed { opacity: .85; }
svg .st-changed polygon, svg .st-changed ellipse { stroke: var(--changed); stroke-width: 2.4; }
svg .st-matched polygon, svg .st-matched ellipse { stroke: var(--matched); stroke-width: 2.4; }
svg .edge.st-added polygon { fill: var(--added); } svg .edge.st-removed polygon { fill: var(--removed); }
svg .glyph { font: bold 13px system-ui, sans-serif; pointer-events: none; } svg .st-added .glyph { fill: var(--added); } svg .st-removed .glyph { fill: var(--removed); } svg .st-changed .glyph { fill: var(--changed); } svg .st-matched .glyph { fill: var(--matched); }
svg .picked polygon, svg .picked ellipse, svg .picked path { stroke: var(--ink); stroke-width: 3; } svg .found polygon, svg .found ellipse { stroke: var(--matched); stroke-width: 3; }
svg .dim { opacity: .25; }
)css";

}  // namespace pw::viz
