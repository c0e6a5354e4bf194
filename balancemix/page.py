"""The demo's page: curves of two methods, and the rows whose labels were found wrong.

One HTML file that needs nothing else: pictures are inside it.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

from balancemix.data.dataset import Rows
from balancemix.findings import Finding

COLOURS = {"bce": "#9a5b13", "mixup": "#6b7280", "balancemix": "#0b6e99"}

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff; margin: 0 auto;
       max-width: 62rem; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
p { max-width: 46rem; } .lead { color: #57606a; margin-top: 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .8rem .35rem 0; text-align: right; border-bottom: 1px solid #d8dee4; }
th:first-child, td:first-child { text-align: left; } th { color: #57606a; font-weight: 600; }
.best { font-weight: 700; } .wide { overflow-x: auto; } figure { margin: 0; }
svg { width: 100%; max-width: 48rem; height: auto; }
.rows { display: grid; grid-template-columns: repeat(auto-fill, minmax(13.5rem, 1fr)); gap: 1rem; }
.row { border: 1px solid #d8dee4; border-radius: .5rem; padding: .7rem; }
.row img { width: 100%; image-rendering: pixelated; border-radius: .25rem; background: #000;
           display: block; margin-bottom: .5rem; }
.tag { display: inline-block; padding: 0 .5rem; margin: 0 .2rem .2rem 0; border-radius: 1rem;
       background: #eef1f4; }
.wrong { background: #fde2df; color: #a1260d; text-decoration: line-through; }
.missing { background: #d9f2e3; color: #116329; } .missing::before { content: "+ "; }
.verdict { font-size: .85rem; color: #57606a; }
code { background: #f2f4f7; padding: .1rem .3rem; border-radius: .25rem; overflow-wrap: anywhere; }
"""


def render(
    results: Mapping[str, Mapping[str, Any]],
    logs: Mapping[str, Sequence[Mapping[str, Any]]],
    rows: Rows,
    findings: Sequence[Finding],
    quality: Mapping[str, float],
    commands: Sequence[str],
    noise: str,
) -> str:
    """Write the page: metrics and logs by method, the findings on the training rows."""
    best = max(results, key=lambda name: results[name]["last"]["mAP"])
    lines = "".join(_line(name, metrics, name == best) for name, metrics in results.items())
    found = (
        f"{quality['findings']:,} labels were called wrong; {quality['precision']:.1%} of these "
        f"calls are right, and {quality['recall']:.1%} of the {quality['errors']:,} wrong labels "
        "were found. The worst, each on its row:"
    )
    shown = "".join(_row(rows, row, marks) for row, marks in _by_row(findings, 24).items())
    calls = "".join(f"<li><code>{html.escape(command)}</code></li>" for command in commands)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>BalanceMix on noisy digits</title><style>{_STYLE}</style></head><body>
<h1>BalanceMix on noisy digits</h1>
<p class="lead">{len(rows):,} strips of handwritten digits with wrong labels
({html.escape(noise)}), scored on clean labels of other digits.</p>
<div class="wide"><table><thead><tr><th>test mAP</th><th>last</th><th>best</th>
<th>many</th><th>medium</th><th>few</th></tr></thead><tbody>{lines}</tbody></table></div>
<h2>Learning</h2>
<figure class="wide">{curves(logs)}</figure>
<p>Plain training learns the right labels first and the wrong ones after: its score falls.
BalanceMix doubts labels whose loss stays high, and keeps what it has learned.</p>
<h2>Labels found wrong</h2><p>{found}</p>
<div class="rows">{shown}</div>
<h2>Do it again</h2><ul>{calls}</ul>
</body></html>
"""


def curves(logs: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Draw test mAP by epoch, as SVG to stand inside a page."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "balancemix", "font.size": 11}):
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes = figure.add_subplot()
        for name, lines in logs.items():
            epochs = [line["epoch"] for line in lines]
            values = [line["mAP"] for line in lines]
            axes.plot(epochs, values, color=COLOURS.get(name), linewidth=2.2)
            axes.annotate(
                f" {name} {values[-1]:.1f}",
                (epochs[-1], values[-1]),
                color=COLOURS.get(name),
                va="center",
                annotation_clip=False,
            )
        axes.set_xlim(1, max(len(lines) for lines in logs.values()))
        axes.set_xlabel("epoch")
        axes.set_ylabel("test mAP, %")
        axes.grid(axis="y", color="#e5e8eb")
        axes.spines[["top", "right"]].set_visible(False)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    text = drawn.getvalue()
    return text[text.index("<svg") :]


def _line(name: str, metrics: Mapping[str, Any], best: bool) -> str:
    last = metrics["last"]
    values = [last["mAP"], metrics["best"]["mAP"]]
    values += [last.get(f"mAP_{group}", float("nan")) for group in ("many", "medium", "few")]
    cells = "".join(f"<td>{value:.1f}</td>" for value in values)
    return f"<tr{' class=best' if best else ''}><td>{html.escape(name)}</td>{cells}</tr>"


def _by_row(findings: Sequence[Finding], most: int) -> dict[int, list[Finding]]:
    """Gather the findings of the worst rows, in order."""
    rows: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.row in rows or len(rows) < most:
            rows.setdefault(finding.row, []).append(finding)
    return rows


def _row(rows: Rows, row: int, marks: Sequence[Finding]) -> str:
    picture, shown = rows.picture(row), ""
    if picture is not None:
        data = io.BytesIO()
        picture.save(data, format="PNG")
        source = base64.b64encode(data.getvalue()).decode()
        shown = f'<img alt="{html.escape(rows.names[row])}" src="data:image/png;base64,{source}">'
    problems = {mark.column: mark.kind for mark in marks}
    tags = "".join(
        f'<span class="tag {problems.get(k, "")}">{html.escape(name)}</span>'
        for k, name in enumerate(rows.classes)
        if rows.labels[row, k] or k in problems
    )
    verdict = ""
    if rows.truth is not None:
        true = [name for k, name in enumerate(rows.classes) if rows.truth[row, k]]
        verdict = f'<div class="verdict">truth: {html.escape(", ".join(true))}</div>'
    return f'<div class="row">{shown}{tags}{verdict}</div>'
