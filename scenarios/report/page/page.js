// Draws the charts of a report: what their configuration, which is JSON, cannot
// say is here. Colours come from the style sheet; a change of the scheme and
// printing draw all of them again.
(() => {
  'use strict';

  const root = document.documentElement;
  const configurations = JSON.parse(document.getElementById('charts').textContent);
  const boxes = [...document.querySelectorAll('.chart')];
  const print = { width: 700, pixelRatio: 3 };
  const narrow = 520;

  const within = (value, least, most) => Math.min(Math.max(value, least), most);
  // Numbers as in the tables: full digits, no exponent.
  const plain = (value, digits) => {
    if (value === 0) return '0';
    const before = Math.floor(Math.log10(Math.abs(value)));
    return value.toFixed(within(digits - 1 - before, 0, 12));
  };
  const withUnit = (text, unit) => {
    if (unit === '$') return `$${text}`;
    return unit ? `${text} ${unit}` : text;
  };
  // A bar is as long as what it is about, or runs from a low to a high value.
  const isRange = (chart) => chart.data.datasets.some((dataset) => dataset.role === 'mark');
  const barText = (chart, [low, high], digits) => {
    const { unit } = chart.options.scales.x;
    return withUnit(isRange(chart) ? `${plain(low, digits)} \u2013 ${plain(high, digits)}` :
      plain(high - low, digits), unit);
  };
  const tickText = (value) => {
    const size = Math.abs(value);
    const plainly = size === 0 || (size < 1e6 && size >= 1e-3);
    return plainly ? String(Number(value.toPrecision(6))) : value.toExponential(0);
  };

  // Of a logarithmic axis 1, 2 and 5 of every power of ten, over many of them 1.
  const logarithmicTick = function (value) {
    const digit = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
    const decades = Math.log10(this.max / this.min);
    const shown = decades > 2.5 ? [1] : [1, 2, 5];
    return shown.some((one) => Math.abs(digit - one) < 1e-6) ? tickText(value) : null;
  };

  // A label in lines of at most so many letters where that can be, broken behind
  // a slash, else behind blanks.
  const inLines = (label, most) => {
    if (label.length <= most) return [label];
    const cut = label.indexOf('/') + 1;
    if (cut > 0 && cut < label.length) {
      return [label.slice(0, cut), ...inLines(label.slice(cut), most)];
    }
    const lines = [];
    for (const word of label.split(/ (?!%)/)) {
      const longer = `${lines[lines.length - 1]} ${word}`;
      if (lines.length && longer.length <= most) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines;
  };

  const meet = (a, b) => a.left < b.right && b.left < a.right &&
    a.top < b.bottom && b.top < a.bottom;
  const around = (x, y, size) =>
    ({ left: x - size, right: x + size, top: y - size, bottom: y + size });

  const paint = (context, text, x, y, colours) => {
    context.lineWidth = 3;
    context.lineJoin = 'round';
    context.strokeStyle = colours.paper;
    context.strokeText(text, x, y);
    context.fillStyle = colours.ink;
    context.fillText(text, x, y);
  };

  const inLabelFont = (chart, draw) => {
    const { ctx } = chart;
    ctx.save();
    ctx.font = `${Chart.defaults.font.size}px ${Chart.defaults.font.family}`;
    ctx.textBaseline = 'middle';
    draw(ctx);
    ctx.restore();
  };

  // Where lines run, as small boxes that no label may lie on.
  const boxesOfLine = (points) => points.slice(1).flatMap((to, i) => {
    const from = points[i];
    const steps = Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / 6);
    return Array.from({ length: steps }, (_, step) => around(
      from.x + (to.x - from.x) * step / steps,
      from.y + (to.y - from.y) * step / steps, 2));
  });

  // Names beside points, none upon another, on a point or on a line; one that
  // has no room stands in the point's tooltip and in the table.
  const pointNames = (colours) => ({
    id: 'pointNames',
    afterDatasetsDraw(chart) {
      const wanted = [];
      const taken = [];
      chart.data.datasets.forEach((dataset, at) => {
        if (!chart.isDatasetVisible(at)) return;
        const { data } = chart.getDatasetMeta(at);
        if (dataset.showLine) taken.push(...boxesOfLine(data));
        data.forEach((point, i) => {
          const radius = point.options.radius;
          if (radius > 0) taken.push(around(point.x, point.y, radius));
          if (dataset.named && dataset.data[i].name) {
            wanted.push({ x: point.x, y: point.y, radius, text: dataset.data[i].name });
          }
        });
      });
      inLabelFont(chart, (context) => {
        const placed = wanted.map((point) => {
          const place = placeFor(point, context.measureText(point.text).width,
            taken, chart.chartArea);
          if (place) taken.push(place);
          return { point, place };
        }).filter(({ place }) => place);
        placed.filter(({ place }) => place.away > 6).forEach(({ point, place }) => {
          context.strokeStyle = colours.faint;
          context.lineWidth = 1;
          const x = within(point.x, place.left, place.right);
          const y = within(point.y, place.top, place.bottom);
          const edge = point.radius / Math.hypot(x - point.x, y - point.y);
          context.beginPath();
          context.moveTo(point.x + (x - point.x) * edge, point.y + (y - point.y) * edge);
          context.lineTo(x, y);
          context.stroke();
        });
        placed.forEach(({ point, place }) => paint(context, point.text, place.left,
          (place.top + place.bottom) / 2, colours));
      });
    },
  });

  // The nearest free place for a text of that width; undefined: there is none.
  const placeFor = (point, width, taken, area) => {
    const half = 7;
    for (const away of [4, 12, 22, 34, 46, 60, 76]) {
      const off = point.radius + away;
      for (const [right, down] of
        [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [1, 1], [-1, -1], [-1, 1]]) {
        const slant = right && down ? 0.7 : 1;
        const x = point.x + right * off * slant;
        const y = point.y + down * (off * slant + half);
        const left = right > 0 ? x : right < 0 ? x - width :
          within(x - width / 2, area.left, area.right - width);
        const place = { left, right: left + width, top: y - half, bottom: y + half, away };
        const inside = place.left >= area.left && place.right <= area.right &&
          place.top >= area.top && place.bottom <= area.bottom;
        if (inside && !taken.some((other) => meet(place, other))) return place;
      }
    }
    return undefined;
  };

  // What a bar is long, or from where to where it goes, beside it.
  const barNames = (colours) => ({
    id: 'barNames',
    afterDatasetsDraw(chart) {
      const { right, left } = chart.chartArea;
      inLabelFont(chart, (context) => {
        chart.data.datasets.forEach((dataset, at) => {
          if (dataset.role === 'mark' || !chart.isDatasetVisible(at)) return;
          chart.getDatasetMeta(at).data.forEach((bar, i) => {
            if (!dataset.data[i]) return;
            const text = barText(chart, dataset.data[i], 3);
            const start = Math.min(bar.base, bar.x);
            const end = Math.max(bar.base, bar.x);
            const width = context.measureText(text).width;
            if (end + 6 + width <= right) paint(context, text, end + 6, bar.y, colours);
            else if (start - 6 - width >= left) {
              paint(context, text, start - 6 - width, bar.y, colours);
            } else if (!isRange(chart) && end - start > width + 12) {
              context.fillStyle = colours.ink;
              context.fillText(text, end - 6 - width, bar.y);
            }
          });
        });
      });
    },
  });

  // A line across the bars at a value of their axis.
  const limitLine = (colours) => ({
    id: 'limitLine',
    afterDatasetsDraw(chart) {
      const { limit } = chart.options;
      if (!limit) return;
      const x = chart.scales.x.getPixelForValue(limit.value);
      const { top, bottom } = chart.chartArea;
      inLabelFont(chart, (context) => {
        context.strokeStyle = colours.ink;
        context.lineWidth = 2;
        context.setLineDash([6, 3]);
        context.beginPath();
        context.moveTo(x, top);
        context.lineTo(x, bottom);
        context.stroke();
        const width = context.measureText(limit.text).width;
        const start = within(x - width / 2, 0, chart.width - width);
        paint(context, limit.text, start, top - 10, colours);
      });
    },
  });

  const pointLines = ({ scales }, { dataset, raw }) => {
    const lines = ['x', 'y'].map((axis) => `${scales[axis].quantity}: ` +
      withUnit(plain(raw[axis], 4), scales[axis].unit));
    if (raw.share) lines.push(`${dataset.share}: ${plain(100 * raw.share, 3)} %`);
    return lines;
  };
  const barLine = (chart, { dataset, raw }) => {
    const text = Array.isArray(raw) ? barText(chart, raw, 4) :
      withUnit(plain(raw, 4), chart.options.scales.x.unit);
    return `${dataset.label}: ${text}`;
  };

  // Points at one place have their names above what is theirs in common; the
  // bar and the mark of a row have a line each.
  const tooltip = (chart, colours) => {
    const isBars = chart.type === 'bar';
    return {
      backgroundColor: colours.ink,
      titleColor: colours.paper,
      bodyColor: colours.paper,
      displayColors: false,
      filter: (item) => item.raw !== null,
      callbacks: {
        title: (items) => [...new Set(items.map((item) => item.raw.name || item.label))],
        beforeBody: (items) =>
          (isBars || !items.length ? [] : pointLines(chart.options, items[0])),
        label: (item) => (isBars ? barLine(chart, item) : null),
      },
    };
  };

  const dressScale = (scale, colours) => {
    scale.ticks = { color: colours.ink, ...scale.ticks };
    scale.title = { color: colours.ink, ...scale.title };
    scale.grid = { color: colours.grid, borderColor: colours.grid, ...scale.grid };
    if (scale.type === 'logarithmic') scale.ticks.callback = logarithmicTick;
    if (scale.type === 'linear') scale.ticks.callback = tickText;
  };

  const dressDataset = (dataset, colours) => {
    const colour = colours[dataset.role];
    dataset.backgroundColor = colour;
    dataset.borderColor = dataset.role === 'chosen' ? colours.paper : colour;
  };

  // Names of bars in as many lines as they need; returns how many the longest has.
  const dressBars = (chart, width) => {
    const letters = Math.max(Math.floor(0.4 * width / 6.5), 12);
    const lines = chart.data.labels.map((label) => inLines(label, letters));
    const isMarked = (index) => chart.data.datasets.some(
      (dataset) => dataset.role === 'chosen' && dataset.data[index]);
    chart.options.scales.y.ticks.callback = (index) => lines[index];
    chart.options.scales.y.ticks.font = (context) =>
      ({ weight: isMarked(context.index) ? 'bold' : 'normal' });
    return Math.max(...lines.map((line) => line.length));
  };

  const build = (configuration, box, colours, forPrint) => {
    const chart = JSON.parse(JSON.stringify(configuration));
    const width = forPrint ? print.width : box.clientWidth;
    const { options } = chart;
    for (const scale of Object.values(options.scales)) dressScale(scale, colours);
    chart.data.datasets.forEach((dataset) => dressDataset(dataset, colours));
    let height = forPrint ? 260 : width < narrow ? 300 : 380;
    if (chart.type === 'bar') {
      const row = (forPrint ? 6 : 12) + 16 * dressBars(chart, width);
      height = 80 + row * chart.data.labels.length;
    }
    options.responsive = !forPrint;
    options.maintainAspectRatio = false;
    options.animation = false;
    options.plugins.legend.labels =
      { color: colours.ink, usePointStyle: true, boxHeight: 8 };
    options.plugins.tooltip = tooltip(chart, colours);
    if (forPrint) options.devicePixelRatio = print.pixelRatio;
    chart.plugins = chart.type === 'bar' ?
      [barNames(colours), limitLine(colours)] : [pointNames(colours)];
    box.style.height = `${height}px`;
    const canvas = box.firstElementChild;
    if (forPrint) {
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      canvas.width = width;
      canvas.height = height;
    }
    return new Chart(canvas, chart);
  };

  let drawn = [];
  const draw = (forPrint) => {
    drawn.forEach((chart) => chart.destroy());
    root.classList.toggle('paper', forPrint);
    const style = getComputedStyle(root);
    const colours = {};
    for (const name of ['ink', 'faint', 'paper', 'grid', 'dot', 'bar', 'line', 'chosen']) {
      colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
    colours.mark = colours.ink;
    drawn = boxes.map((box, i) => build(configurations[i], box, colours, forPrint));
  };

  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 12;
  // What was open for readers without scripts.
  document.querySelectorAll('details.twin').forEach((twin) => { twin.open = false; });
  boxes.forEach((box) => { box.hidden = false; });

  const paper = matchMedia('print');
  let printing = paper.matches;
  const show = (forPrint) => {
    if (printing === forPrint) return;
    printing = forPrint;
    draw(printing);
  };
  draw(printing);
  addEventListener('beforeprint', () => show(true));
  addEventListener('afterprint', () => show(false));
  paper.addEventListener('change', () => show(paper.matches));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => draw(printing));
  // Names of bars take other lines where there is other room.
  let width = root.clientWidth;
  addEventListener('resize', () => {
    if (printing || root.clientWidth === width) return;
    width = root.clientWidth;
    draw(false);
  });
})();
