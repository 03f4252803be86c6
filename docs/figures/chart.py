"""Charts as SVG, readable on light and on dark pages."""

import html
import math

COLOURS = ["#3b7dd8", "#e08a1e", "#3f9e6e", "#c2506e",
           "#8a6fc9", "#8a8f98", "#b59a3c", "#4fb0bf"]
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 14px; }
  .axis { stroke: #8a8f98; stroke-width: 1; }
  .grid { stroke: #8a8f98; stroke-width: 0.5; opacity: 0.35; }
  .limit { stroke: #c2506e; stroke-width: 1.5; stroke-dasharray: 5 4; }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3; } }
"""
WIDTH = 760
CHARACTER = 7.8
LEFT, TOP, HEIGHT = 64, 48, 250


class Drawing:
    def __init__(self, title, height):
        self.lines = []
        self.head = (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
                     f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
                     f'height="{height}">\n'
                     f"<title>{html.escape(title)}</title>\n"
                     f"<style>{STYLE}</style>")
        self.text(12, 22, title, kind="title")

    def add(self, element):
        self.lines.append(element)

    def text(self, x, y, words, anchor="start", kind="label"):
        self.add(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" '
                 f'text-anchor="{anchor}">{html.escape(str(words))}</text>')

    def line(self, x1, y1, x2, y2, kind):
        self.add(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" '
                 f'x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def box(self, x, y, width, height, colour):
        self.add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
                 f'height="{height:.1f}" fill="{colour}"/>')

    def legend(self, names, y, colours=COLOURS):
        x = LEFT
        for name, colour in zip(names, colours):
            wide = 26 + CHARACTER * len(name)
            if x + wide > WIDTH:
                x, y = LEFT, y + 20
            self.box(x, y - 10, 12, 12, colour)
            self.text(x + 17, y, name)
            x += wide

    def write(self, path):
        path.write_text("\n".join([self.head, *self.lines, "</svg>\n"]),
                        encoding="utf-8")


def ticks(top):
    """Four or five round steps from 0 to `top` or just above."""
    step = 10 ** math.floor(math.log10(top / 4))
    step = next(step * k for k in (1, 2, 2.5, 5, 10) if top / (step * k) <= 5)
    return [step * i for i in range(math.ceil(top / step - 1e-9) + 1)]


def stacked_bars(path, title, x_label, y_label, bars, limit=None,
                 colours=None):
    """bars: of each bar its label, the words above it, {part: value}.

    colours: {part: colour}, where a part has one of its own.
    """
    names = list(dict.fromkeys(name for _, _, parts in bars for name in parts))
    names = [n for n in names if any(p.get(n, 0) > 0 for _, _, p in bars)]
    chosen = [(colours or {}).get(name, colour)
              for name, colour in zip(names, COLOURS)]
    top = max(sum(parts.values()) for _, _, parts in bars)
    marks = ticks(max(top, limit[1]) if limit else top)
    rows = 1 + int(sum(26 + CHARACTER * len(n) for n in names)) // (WIDTH - LEFT)
    drawing = Drawing(title, TOP + HEIGHT + 62 + 20 * rows)
    bottom = TOP + HEIGHT
    scale = (HEIGHT - 16) / marks[-1]
    for mark in marks:
        y = bottom - mark * scale
        drawing.line(LEFT, y, WIDTH - 12, y, "grid")
        drawing.text(LEFT - 8, y + 4, f"{mark:g}", "end")
    step = (WIDTH - 24 - LEFT) / len(bars)
    for index, (label, above, parts) in enumerate(bars):
        x, y = LEFT + 8 + index * step, bottom
        for name, colour in zip(names, chosen):
            height = parts.get(name, 0) * scale
            y -= height
            if height > 0:
                drawing.box(x, y, step * 0.72, height, colour)
        drawing.text(x + step * 0.36, y - 5, above, "middle")
        drawing.text(x + step * 0.36, bottom + 18, label, "middle")
    if limit:
        y = bottom - limit[1] * scale
        drawing.line(LEFT, y, WIDTH - 12, y, "limit")
        drawing.text(WIDTH - 14, y - 5, limit[0], "end")
    drawing.line(LEFT, bottom, WIDTH - 12, bottom, "axis")
    drawing.text((LEFT + WIDTH) / 2, bottom + 38, x_label, "middle")
    drawing.text(12, TOP - 6, y_label)
    drawing.legend(names, bottom + 62, chosen)
    drawing.write(path)


def lines(path, title, x_label, y_label, series):
    """series: {name: [(x, y)]}, x on a scale of powers of two."""
    points = [point for of_one in series.values() for point in of_one]
    marks = ticks(max(y for _, y in points))
    places = sorted({x for x, _ in points})
    drawing = Drawing(title, TOP + HEIGHT + 82)
    bottom = TOP + HEIGHT
    low, high = math.log2(places[0]), math.log2(places[-1])

    def at(x, y):
        return (LEFT + 24 + (math.log2(x) - low) / (high - low)
                * (WIDTH - LEFT - 72), bottom - y * (HEIGHT - 16) / marks[-1])

    for mark in marks:
        y = at(places[0], mark)[1]
        drawing.line(LEFT, y, WIDTH - 12, y, "grid")
        drawing.text(LEFT - 8, y + 4, f"{mark:g}", "end")
    for place in places:
        drawing.text(at(place, 0)[0], bottom + 18, f"{place:g}", "middle")
    for (_, of_one), colour in zip(series.items(), COLOURS):
        way = " ".join("{:.1f},{:.1f}".format(*at(*p)) for p in of_one)
        drawing.add(f'<polyline points="{way}" fill="none" '
                    f'stroke="{colour}" stroke-width="2.5"/>')
        for point in of_one:
            x, y = at(*point)
            drawing.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" '
                        f'fill="{colour}"/>')
    drawing.line(LEFT, bottom, WIDTH - 12, bottom, "axis")
    drawing.text((LEFT + WIDTH) / 2, bottom + 38, x_label, "middle")
    drawing.text(12, TOP - 6, y_label)
    drawing.legend(list(series), bottom + 62)
    drawing.write(path)


def scatter(path, title, x_label, y_label, groups):
    """groups: {name: [(x, y)]}, both on one logarithmic scale, with y = x."""
    points = [point for of_one in groups.values() for point in of_one]
    low = math.floor(math.log10(min(min(p) for p in points)))
    high = math.ceil(math.log10(max(max(p) for p in points)))
    tall = 420
    rows = 1 + int(sum(26 + CHARACTER * len(n) for n in groups)) // (WIDTH - LEFT)
    drawing = Drawing(title, TOP + tall + 62 + 20 * rows)
    bottom = TOP + tall

    def at(x, y):
        return (LEFT + (math.log10(x) - low) / (high - low)
                * (WIDTH - LEFT - 24),
                bottom - (math.log10(y) - low) / (high - low) * (tall - 8))

    for power in range(low, high + 1):
        x, y = at(10.0 ** power, 10.0 ** power)
        drawing.line(LEFT, y, WIDTH - 24, y, "grid")
        drawing.line(x, TOP + 8, x, bottom, "grid")
        drawing.text(LEFT - 8, y + 4, f"{10.0 ** power:g}", "end")
        drawing.text(x, bottom + 18, f"{10.0 ** power:g}", "middle")
    drawing.line(*at(10.0 ** low, 10.0 ** low),
                 *at(10.0 ** high, 10.0 ** high), "limit")
    for (_, of_one), colour in zip(groups.items(), COLOURS):
        for point in of_one:
            x, y = at(*point)
            drawing.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" '
                        f'fill="{colour}" fill-opacity="0.7"/>')
    drawing.text((LEFT + WIDTH) / 2, bottom + 38, x_label, "middle")
    drawing.text(12, TOP - 6, y_label)
    drawing.legend(list(groups), bottom + 62)
    drawing.write(path)


def reliability(path, title, x_label, y_label, groups):
    """groups: {name: [(stated, came true, count)]}, in percent, with y = x.

    The area of a dot is its count.
    """
    tall = 420
    drawing = Drawing(title, TOP + tall + 82)
    bottom = TOP + tall

    def at(x, y):
        return (LEFT + x / 100 * (WIDTH - LEFT - 24),
                bottom - y / 100 * (tall - 8))

    for mark in range(0, 101, 20):
        x, y = at(mark, mark)
        drawing.line(LEFT, y, WIDTH - 24, y, "grid")
        drawing.line(x, TOP + 8, x, bottom, "grid")
        drawing.text(LEFT - 8, y + 4, mark, "end")
        drawing.text(x, bottom + 18, mark, "middle")
    drawing.line(*at(0, 0), *at(100, 100), "limit")
    for of_one, colour in zip(groups.values(), COLOURS):
        for stated, true, count in of_one:
            x, y = at(stated, true)
            drawing.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" '
                        f'r="{0.6 * math.sqrt(count):.1f}" '
                        f'fill="{colour}" fill-opacity="0.6"/>')
    drawing.text((LEFT + WIDTH) / 2, bottom + 38, x_label, "middle")
    drawing.text(12, TOP - 6, y_label)
    drawing.legend(list(groups), bottom + 62)
    drawing.write(path)
