"""The style sheet of a report: light and dark, from a phone to a wide screen."""

from __future__ import annotations

STYLE = """
:root { --ink:#1d2129; --soft:#5b6472; --line:#d9dee6; --page:#f5f6f8; --card:#fff;
  --blue:#2f6fd0; --green:#12805c; --red:#c2342c; --gray:#98a1ae; --amber:#b06b00;
  --code:#f1f3f6; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6e9ee; --soft:#a2acba; --line:#39414d;
  --page:#14171c; --card:#1d2128; --blue:#74a9f7; --green:#4bc596; --red:#f0837c; --gray:#737d8c;
  --amber:#e2a94b; --code:#161a20; } }
* { box-sizing:border-box; }
body { margin:0; background:var(--page); color:var(--ink);
  font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif; }
header,main { max-width:56rem; margin:0 auto; padding:0 1rem; }
header { padding-top:1.5rem; }
h1 { font-size:1.5rem; line-height:1.25; margin:.2rem 0; overflow-wrap:anywhere; }
h2 { font-size:1.05rem; margin:0 0 .6rem; }
.run,.status { margin:0; color:var(--soft); overflow-wrap:anywhere; }
section { background:var(--card); border:1px solid var(--line); border-radius:10px;
  padding:1rem; margin:1rem 0; min-width:0; }
p { margin:.5rem 0; overflow-wrap:anywhere; unicode-bidi:isolate; }
.lead { font-size:1.15rem; }
.bad { color:var(--red); }
.note { color:var(--soft); font-size:.88rem; }
.scroll { overflow-x:auto; }
table { border-collapse:collapse; width:100%; font-size:.92rem; }
th,td { text-align:left; padding:.3rem .7rem .3rem 0; border-bottom:1px solid var(--line);
  vertical-align:top; unicode-bidi:isolate; }
th { color:var(--soft); font-weight:500; }
.n { text-align:right; font-variant-numeric:tabular-nums; white-space:nowrap; }
pre { background:var(--code); border-radius:6px; padding:.6rem; margin:.5rem 0; overflow:auto;
  max-height:24rem; font:.82rem/1.4 ui-monospace,"DejaVu Sans Mono",monospace;
  unicode-bidi:isolate; }
code { font:.88em ui-monospace,"DejaVu Sans Mono",monospace; background:var(--code);
  border-radius:4px; padding:.05em .3em; }
details { border-bottom:1px solid var(--line); padding:.25rem 0; }
summary { cursor:pointer; overflow-wrap:anywhere; }
figure { margin:.5rem 0; }
figcaption { display:flex; flex-wrap:wrap; gap:.2rem 1rem; font-size:.85rem; color:var(--soft);
  margin-top:.4rem; }
.dot { display:inline-block; width:.7em; height:.7em; border-radius:50%; margin-right:.45em;
  border:2px solid var(--gray); background:transparent; }
.dot.scored { background:var(--blue); border-color:var(--blue); }
.dot.champion { background:var(--green); border-color:var(--green); }
.dot.failed,.dot.lost { border-color:var(--red); }
.dot.helped { background:var(--green); border-color:var(--green); }
.dot.hurt { background:var(--red); border-color:var(--red); }
.dot.pruned { background:var(--gray); }
.dot.running { border-color:var(--amber); }
.dot.raw,.dot.confirmed { border-radius:0; height:0; width:1.4em; vertical-align:.25em;
  border-width:0 0 2px; border-color:var(--amber); border-bottom-style:dashed; }
.dot.confirmed { border-bottom:4px solid var(--green); }
img { display:block; max-width:100%; margin:.6rem auto; background:#fff; border-radius:6px; }
svg { display:block; }
svg.rows { font-size:13px; }
svg.chart { width:100%; max-width:44rem; height:auto; font-size:11.5px; margin:0 auto; }
text { fill:var(--ink); }
.tick,.value { fill:var(--soft); }
.name { font-weight:600; }
text.champion tspan { fill:var(--green); font-weight:600; }
.value { font-variant-numeric:tabular-nums; }
.edge { fill:none; stroke:var(--line); stroke-width:1.5; }
.grid { stroke:var(--line); stroke-width:1; }
.axis { stroke:var(--soft); stroke-width:1; stroke-dasharray:3 3; }
circle { fill:var(--card); stroke:var(--gray); stroke-width:2; }
circle.scored { fill:var(--blue); stroke:none; }
circle.champion,circle.helped { fill:var(--green); stroke:none; }
circle.failed,circle.lost { stroke:var(--red); }
circle.hurt { fill:var(--red); stroke:none; }
circle.running { stroke:var(--amber); }
circle.pruned { fill:var(--gray); stroke:none; }
circle.more { stroke:none; fill:none; }
.chart circle { stroke-width:1.5; }
.chart circle.scored,.chart circle.pruned { fill:var(--blue); stroke:none; fill-opacity:.6; }
.whisker { stroke:var(--gray); stroke-width:3; stroke-linecap:round; }
.whisker.helped { stroke:var(--green); }
.whisker.hurt { stroke:var(--red); }
.band { fill:var(--green); fill-opacity:.16; }
.raw { fill:none; stroke:var(--amber); stroke-width:1.5; stroke-dasharray:4 3; }
.confirmed { fill:none; stroke:var(--green); stroke-width:2.5; }
@media print { section { break-inside:avoid; } }
"""
