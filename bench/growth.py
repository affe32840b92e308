#!/usr/bin/env python3
"""How the cost of a translator's training step grows: `couplet bench growth` as a picture and as four figures.

    bench/growth.py [--couplet build/couplet] [--svg bench/growth.svg] [--seconds S] [--threads N]
    bench/growth.py --from growth.json --svg growth.svg          # of a run that was kept with `couplet bench growth --json`

Four panels: time per token by batch; time of a step by the length of sources and of targets; memory by batch. Lines are
least squares; a figure is how far a point lies from its line, in parts of the line. Python's own library is enough.
"""
import argparse
import json
import subprocess
import sys

LINE, DOT, GREY, TEXT = "#1f5fa8", "#c4501b", "#b8b8b8", "#222222"


def line(points):
    """least squares through (x, y): intercept, slope"""
    n = len(points)
    mx, my = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    slope = sum((x - mx) * (y - my) for x, y in points) / sum((x - mx) ** 2 for x, _ in points)
    return my - slope * mx, slope


def off_line(points):
    a, b = line(points)
    return max(abs(y - a - b * x) / (a + b * x) for x, y in points)


def series(results, name, value):
    return [(r["size"], value(r)) for r in results if r["work"] == "growth" and r["name"] == name]


def figures(results):
    """points of the four panels, and what they come to"""
    token = series(results, "batch", lambda r: 1e6 / r["tokens_per_s"])
    source = series(results, "source", lambda r: r["ms"])
    target = series(results, "target", lambda r: r["ms"])
    memory = series(results, "batch", lambda r: r["planned_bytes"] / 2**20)
    spread = max(y for _, y in token) / min(y for _, y in token) - 1
    return dict(token=token, source=source, target=target, memory=memory, token_spread=spread,
                source_off=off_line(source), target_off=off_line(target), memory_off=off_line(memory))


def sentence(f):
    return (f"time per token from batch {f['token'][0][0]} to {f['token'][-1][0]}: within {100 * f['token_spread']:.0f} %; "
            f"off a straight line: source length {100 * f['source_off']:.0f} %, target length "
            f"{100 * f['target_off']:.0f} %, memory by batch {100 * f['memory_off']:.1f} %")


def ticks(most):
    """about four round numbers from 0 to at least most"""
    step = 1
    while 4 * step < most:
        step *= 2.5 if str(step)[0] == "2" else 2
    while step > 0.25 and step * 2 > most:
        step /= 2
    return [i * step for i in range(int(-(-most // step)) + 1)]


def panel(x0, y0, title, unit, points, fitted):
    """one picture of 300 by 190 at (x0, y0); x is as far apart as the numbers are"""
    left, top, wide, high = x0 + 46, y0 + 30, 240, 128
    marks = ticks(max(y for _, y in points))
    last, top_mark = points[-1][0], marks[-1]
    px = lambda x: left + wide * x / last          # noqa: E731
    py = lambda y: top + high * (1 - y / top_mark)  # noqa: E731
    out = [f'<text x="{x0 + 10}" y="{y0 + 16}" font-weight="bold">{title}</text>']
    for m in marks:
        out.append(f'<path d="M{left} {py(m):.1f}H{left + wide}" stroke="{GREY}" stroke-width="0.6"/>'
                   f'<text x="{left - 5}" y="{py(m) + 4:.1f}" text-anchor="end">{m:g}</text>')
    for x, _ in points:
        if x * 10 >= last:
            out.append(f'<text x="{px(x):.1f}" y="{top + high + 15}" text-anchor="middle">{x}</text>')
    if fitted:
        a, b = line(points)
        out.append(f'<path d="M{px(0):.1f} {py(max(a, 0)):.1f}L{px(last):.1f} {py(a + b * last):.1f}" stroke="{LINE}"/>')
    else:
        out.append(f'<polyline fill="none" stroke="{LINE}" points="'
                   + " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in points) + '"/>')
    out += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3" fill="{DOT}"><title>{x}: {y:.4g} {unit}</title></circle>'
            for x, y in points]
    out.append(f'<text x="{left + wide}" y="{y0 + 16}" text-anchor="end" fill="#666666">{unit}</text>')
    return "\n".join(out)


def picture(f):
    panels = [("time per target token, by batch", "µs", f["token"], 0), ("planned memory, by batch", "MiB", f["memory"], 1),
              ("step, by source length", "ms", f["source"], 1), ("step, by target length", "ms", f["target"], 1)]
    body = "\n".join(panel(300 * (i % 2), 190 * (i // 2), *p) for i, p in enumerate(panels))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="600" height="390" font-family="sans-serif" font-size="11" '
            f'fill="{TEXT}">\n<rect width="600" height="390" fill="white"/>\n{body}\n</svg>\n')


def measure(couplet, seconds, threads=0):
    command = [couplet, "bench", "growth", "--json", "--seconds", str(seconds)]
    run = subprocess.run(command + (["--threads", str(threads)] if threads else []), stdout=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f"'{couplet} bench growth' ended with {run.returncode}")
    return json.loads(run.stdout)


def main():
    p = argparse.ArgumentParser(description="draws how cost grows")
    p.add_argument("--couplet", default="build/couplet")
    p.add_argument("--threads", type=int, default=0, help="default: all cores")
    p.add_argument("--seconds", type=float, default=3, help="of each of the 15 points")
    p.add_argument("--from", dest="saved", help="JSON of `couplet bench growth --json` instead of measuring")
    p.add_argument("--json", help="writes what was measured")
    p.add_argument("--svg", help="writes the picture")
    a = p.parse_args()
    result = json.load(open(a.saved)) if a.saved else measure(a.couplet, a.seconds, a.threads)
    f = figures(result["results"])
    if a.json:
        json.dump(result, open(a.json, "w"))
    if a.svg:
        open(a.svg, "w").write(picture(f))
    print(sentence(f))


if __name__ == "__main__":
    main()
