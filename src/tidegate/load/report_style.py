"""How a load report looks: light, dark and on paper."""

from __future__ import annotations

STYLE = """
:root{--ink:#1b1f24;--soft:#57606a;--ground:#ffffff;--page:#f5f6f8;--grid:#d9dde3;--card:#ffffff;
--good:#1a7f4b;--bad:#c4331d;--warn:#9a6700;--info:#0969a8}
@media (prefers-color-scheme:dark){:root{--ink:#e3e7ec;--soft:#9aa4b0;--ground:#171b21;--page:#0f1216;--grid:#343b45;
--card:#171b21;--good:#4cc38a;--bad:#ff7b66;--warn:#e3b341;--info:#6cb6ff}}
@media (prefers-color-scheme:dark){svg [stroke="#0072b2"]{stroke:#4aa3df}svg [fill="#0072b2"]{fill:#4aa3df}
svg [stroke="#6b7280"]{stroke:#a3acb8}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;color:var(--ink);background:var(--page);
margin:0;padding:28px 20px 60px}
main{max-width:1160px;margin:0 auto}
h1{font-size:26px;margin:0;line-height:1.25}h2{font-size:19px;margin:40px 0 6px}h3{font-size:15px;margin:14px 0 6px}
.words,.soft{color:var(--soft)}.words{margin:0 0 12px;max-width:85ch}
header{background:var(--card);border:1px solid var(--grid);border-radius:10px;padding:22px 24px}
.top{display:flex;flex-wrap:wrap;gap:14px;align-items:center}
.badge{font-weight:700;letter-spacing:.04em;padding:4px 14px;border-radius:999px;color:#fff;font-size:15px}
.badge.PASSED{background:#1a7f4b}.badge.FAILED{background:#c4331d}.badge.INVALID{background:#9a6700}
.badge.NOT{background:#57606a}
.why{font-size:16px;margin:10px 0 14px}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(210px,1fr));gap:10px 20px;margin:0}
.facts dt,.card dt{font-size:12px;color:var(--soft)}.facts dd{margin:0;overflow-wrap:anywhere}
pre{background:var(--page);border:1px solid var(--grid);border-radius:6px;padding:9px 12px;margin:14px 0 0;
white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.45 ui-monospace,"DejaVu Sans Mono",monospace}
.alarm{border-left:4px solid var(--bad);padding:6px 14px;margin:14px 0 0;list-style:none;background:var(--page)}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(128px,1fr));gap:10px}
.cards.several{grid-template-columns:repeat(auto-fill,minmax(165px,1fr))}
.card{background:var(--card);border:1px solid var(--grid);border-radius:8px;padding:9px 12px;margin:0;cursor:help}
.card dd{margin:0;font-size:20px;font-weight:600;line-height:1.3;white-space:nowrap}
.card small{display:block;color:var(--soft);font-size:12px;font-weight:400;white-space:normal}
.card.bad dd{color:var(--bad)}.card.warn dd{color:var(--warn)}
figure{margin:0 0 16px;background:var(--ground);border:1px solid var(--grid);border-radius:8px;padding:6px;min-width:0}
figure svg{display:block;width:100%;height:auto;fill:var(--ink)}
svg rect[fill="#ffffff"]{fill:var(--ground)}svg line[stroke="#d9dde3"]{stroke:var(--grid)}
svg line[stroke="#1b1f24"]{stroke:var(--ink)}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));gap:0 16px}
.scroll{overflow-x:auto;margin:0 0 14px;background:var(--card);border:1px solid var(--grid);border-radius:8px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
td,th{padding:5px 12px;border-bottom:1px solid var(--grid);text-align:right;white-space:nowrap}
th{font-weight:600;font-size:13px;color:var(--soft);vertical-align:bottom}th[title]{cursor:help}
tbody tr:last-child td{border-bottom:0}
td:first-child,th:first-child,.left td,.left th,td.left,th.left{text-align:left}
td.roomy{white-space:normal;min-width:240px}
.tight td,.tight th{padding:5px 7px}
.wrap td{white-space:normal}.wrap td:first-child,.wrap td.still{white-space:nowrap}
td.good{color:var(--good);font-weight:600}td.bad{color:var(--bad);font-weight:600}td.warn{color:var(--warn);font-weight:600}
td.soft{color:var(--soft)}tr td.part{background:var(--page);font-weight:600}
.tabs>input{position:absolute;opacity:0}
.tabs>label{display:inline-block;padding:5px 13px;margin:0 4px 10px 0;border:1px solid var(--grid);border-radius:999px;
cursor:pointer;background:var(--card);font-size:14px}
.tabs>input:checked+label{background:var(--info);border-color:var(--info);color:var(--ground)}
.tabs>input:focus-visible+label{outline:2px solid var(--info);outline-offset:2px}
.panel{display:none}.panel>h3{display:none}
details{margin:10px 0}summary{cursor:pointer;color:var(--info)}
.words-list{margin:0}.words-list div{padding:5px 0;border-bottom:1px solid var(--grid)}
.words-list dt{font-weight:600}.words-list dd{margin:0;color:var(--soft)}
footer{margin-top:40px;color:var(--soft);font-size:13px}
@media print{:root{--ink:#000;--soft:#444;--ground:#fff;--page:#fff;--card:#fff;--grid:#ccc}
body{padding:0;font-size:12px}main{max-width:none}.panel,.panel>h3{display:block}.tabs>label{display:none}
figure,.card,tr{break-inside:avoid}h2{break-after:avoid}details>*{display:block}.scroll{overflow:visible}}
"""
