// Draws the plots of a report. The figures, sentences and tables of the page do not need it.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const COLOURS = ["--one", "--two", "--three", "--four", "--five", "--six"];
  const DASHES = [undefined, [8, 4], [3, 3], [10, 3, 3, 3], [1, 3], [14, 4]];

  // Numbers as the page writes them.
  const figures = (value, step, units) => {
    let unit = 0;
    while (Math.abs(value) >= step && unit < units.length - 1) { value /= step; unit += 1; }
    const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    return value.toFixed(digits) + units[unit];
  };
  const nanos = (value) => figures(value, 1000, [" ns", " us", " ms", " s"]);
  const bytes = (value) => figures(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
  const count = (value) => value.toLocaleString("en");
  const rate = (value) => figures(value, 1000, ["/s", " k/s", " M/s", " G/s"]);
  const cores = (value) => (value === 0 ? "0" : value < 0.1 ? value.toFixed(3) : value.toFixed(2));
  const seconds = (value) => {
    const total = Math.max(0, value);
    if (total < 120) return (Number.isInteger(total) ? total : total.toFixed(total < 10 ? 2 : 1)) + " s";
    const [hours, minutes] = [Math.floor(total / 3600), Math.floor(total / 60) % 60];
    const rest = String(Math.floor(total % 60)).padStart(2, "0");
    return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
  };

  // Cells of response times: 16 of width 1, then 8 a doubling.
  const cellLowest = (cell) => {
    if (cell < 16) return cell;
    const shift = Math.floor(cell / 8) - 1;
    return (cell - shift * 8) * 2 ** shift;
  };
  const firstCell = (cells) => cells[0];

  // Times in seconds: the run's start, then the end of each slice.
  for (const run of data.runs) {
    run.ends = [0, ...run.end_ns.map((ns) => ns / 1e9)];
    run.lengths = run.end_ns.map((ns, index) => (ns - (index ? run.end_ns[index - 1] : 0)) / 1e9);
    run.perSecond = (column) => column.map((value, index) => (value == null ? null : value / run.lengths[index]));
  }
  const END = Math.max(...data.runs.map((run) => run.ends[run.ends.length - 1]), 1e-9);
  const isOne = data.runs.length === 1;

  // A step reaches back to the slice before: the first value stands at both its ends.
  const steps = (column) => [column.length ? column[0] : null, ...column];
  // What the schedule asked of each slice; reports of schema 1 know only the mean.
  const asked = (run) => (run.asked_samples.some((value) => value != null) ? run.perSecond(run.asked_samples) : run.end_ns.map(() => run.asked));
  const name = (run, what) => (isOne ? what : what ? `${run.label} ${what}` : run.label);

  // The phases of the plan, where all runs have the same.
  const texts = new Set(data.runs.map((run) => JSON.stringify(run.phases)));
  const PHASES = (texts.size === 1 ? data.runs[0].phases : [])
    .map(({ name, from_ns, end_ns, has_faults }, index) => ({ label: `${index + 1} ${name}`, short: String(index + 1), from: from_ns / 1e9, end: end_ns / 1e9, has_faults }));
  // Shades the phases with faults, behind everything else.
  function shadePhases(uplot) {
    const { ctx, bbox } = uplot;
    ctx.save();
    ctx.globalAlpha = 0.1;
    ctx.fillStyle = colour("--bad");
    for (const [left, right] of placed(uplot).filter(([, , phase]) => phase.has_faults)) ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.restore();
  }
  // Marks where each phase begins, with its name where that fits, else its number.
  function markPhases(uplot) {
    const { ctx, bbox } = uplot;
    const ratio = devicePixelRatio || 1;
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    [ctx.textAlign, ctx.textBaseline] = ["left", "bottom"];
    ctx.fillStyle = ctx.strokeStyle = colour("--soft");
    ctx.lineWidth = ratio;
    ctx.setLineDash([2 * ratio, 3 * ratio]);
    for (const [left, right, phase] of placed(uplot)) {
      ctx.beginPath();
      ctx.moveTo(left, bbox.top - 12 * ratio);
      ctx.lineTo(left, bbox.top + bbox.height);
      ctx.stroke();
      const text = [phase.label, phase.short].find((text) => ctx.measureText(text).width + 6 * ratio <= right - left);
      if (text) ctx.fillText(text, left + 3 * ratio, bbox.top - 1 * ratio);
    }
    ctx.restore();
  }
  // The phases in sight, as (left, right, phase) in pixels of the canvas.
  function placed(uplot) {
    const { left, width } = uplot.bbox;
    const at = (seconds) => Math.round(Math.min(left + width, Math.max(left, uplot.valToPos(seconds, "x", true))));
    return PHASES.map((phase) => [at(phase.from), at(phase.end), phase]).filter(([from, end]) => end > from);
  }

  // What each kind of plot over time shows: lines of (label, run, column).
  const KINDS = {
    rate: {
      show: rate,
      lines: () => data.runs.flatMap((run) => [
        ...(isOne ? [{ label: "sent", run, column: run.perSecond(run.sent) }] : []),
        { label: name(run, "accepted"), run, column: run.perSecond(run.accepted) },
        ...(isOne && run.asked != null ? [{ label: "asked", run, column: asked(run), dash: [4, 4] }] : []),
      ]),
    },
    staleness: {
      show: (ms) => nanos(ms * 1e6),
      lines: () => data.runs.map((run) => ({ label: name(run, "stalest series"), run, column: run.staleness_max_ms })),
    },
    cpu: {
      show: cores,
      lines: () => perProcess((run) => run.perSecond(run.cpu_ns.map((ns) => ns / 1e9)), (slice) => slice.cpu_ns / 1e9, true, ""),
    },
    memory: {
      show: bytes,
      base: 1024,
      lines: () => perProcess((run) => run.rss_bytes, (slice) => slice.rss_bytes, false, ""),
    },
    disk: {
      show: (value) => bytes(value) + "/s",
      base: 1024,
      lines: () => [
        ...perProcess((run) => run.perSecond(run.written_bytes), (slice) => slice.written_bytes, true, " written"),
        ...perProcess((run) => run.perSecond(run.read_bytes), (slice) => slice.read_bytes, true, " read"),
      ],
    },
  };

  // One line for tsb itself and one for each process watched.
  function perProcess(own, other, isRate, what) {
    return data.runs.flatMap((run) => run.names.map((process, index) => {
      const watched = () => run.watched.map((slice) => (slice[index - 1] ? other(slice[index - 1]) : null));
      const column = index === 0 ? own(run) : isRate ? run.perSecond(watched()) : watched();
      return { label: name(run, process + what), run, column };
    }));
  }

  // All plots over time show the same time.
  const plots = [];
  const shown = { from: 0, to: END };
  function show(from, to) {
    const span = Math.min(END, Math.max(to - from, END / 5000));
    shown.from = Math.min(Math.max(0, from), END - span);
    shown.to = shown.from + span;
    for (const plot of plots) if (plot.isTime && plot.isVisible) follow(plot);
    tellSpan();
  }
  // Plots out of sight follow when they come into it: an hour of seconds is much to draw.
  function follow(plot) {
    const { min, max } = plot.uplot.scales.x;
    if (min !== shown.from || max !== shown.to) plot.uplot.setScale("x", { min: shown.from, max: shown.to });
  }
  const inSight = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const plot = plots.find((plot) => plot.figure === entry.target);
      if (!plot) continue;
      plot.isVisible = entry.isIntersecting;
      if (plot.isTime && plot.isVisible) follow(plot);
    }
  }, { rootMargin: "200px" });
  function tellSpan() {
    document.getElementById("span").textContent = `${seconds(shown.from)} to ${seconds(shown.to)}`;
  }
  const ZOOMS = {
    left: () => move(-0.25), right: () => move(0.25), in: () => scale(0.5), out: () => scale(2), all: () => show(0, END),
  };
  const move = (share) => { const by = (shown.to - shown.from) * share; show(shown.from + by, shown.to + by); };
  function scale(factor, around) {
    const middle = around ?? (shown.from + shown.to) / 2;
    show(middle - (middle - shown.from) * factor, middle + (shown.to - middle) * factor);
  }

  const axis = (more) => ({
    stroke: colour("--soft"), font: `12px system-ui, sans-serif`, grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1, size: 4 }, ...more,
  });
  const base = (box, height) => ({
    width: Math.max(240, box.clientWidth), height, legend: { live: true }, ...(PHASES.length ? { padding: [24, null, null, null] } : {}),
    cursor: { sync: { key: "time", scales: ["x", null] }, drag: { x: true, y: false, setScale: true }, focus: { prox: 24 } },
    focus: { alpha: 0.35 },
    scales: { x: { time: false, min: shown.from, max: shown.to } },
    // A plot that was zoomed by dragging; one that follows already shows what all show.
    hooks: {
      setScale: [(uplot, key) => {
        const { min, max } = uplot.scales.x;
        if (key === "x" && min != null && (min !== shown.from || max !== shown.to)) show(min, max);
      }],
      drawAxes: [shadePhases], draw: [markPhases],
    },
  });
  const timeAxis = () => axis({ size: 30, values: (_, values) => values.map((value) => (value == null ? "" : seconds(value))), space: 70 });
  const HEIGHT = 200;
  // A log axis has a line and a label at every decade; where few fit, at 2 and 5 as well.
  const decades = (_, __, min, max) => {
    const powers = Array.from({ length: 20 }, (_, power) => 10 ** power);
    const within = (values) => values.filter((value) => value >= min && value <= max);
    const coarse = within(powers);
    return coarse.length > 2 ? coarse : within(powers.flatMap((power) => [power, 2 * power, 5 * power]));
  };

  const logAxis = (hasGrid) => axis({
    size: 76, splits: decades, filter: (_, splits) => splits, grid: { show: hasGrid, stroke: colour("--line"), width: 1 },
    values: (_, values) => values.map((value) => (value == null ? "" : nanos(value))),
  });

  function drawLines(box, kind) {
    const lines = kind.lines().filter((line) => line.column.some((value) => value != null));
    if (!lines.length) return empty(box);
    if (lines.every((line) => line.column.every((value) => !value))) return empty(box, "Nothing: it is 0 in every interval.");
    const tables = lines.map((line) => [line.run.ends, steps(line.column)]);
    const sameTimes = data.runs.length === 1;
    const joined = sameTimes ? [tables[0][0], ...tables.map((table) => table[1])] : uPlot.join(tables);
    const options = base(box, HEIGHT);
    options.scales.y = { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] };
    const incrs = kind.base === 1024 ? Array.from({ length: 44 }, (_, power) => 2 ** power) : undefined;
    options.axes = [timeAxis(), axis({ size: 76, values: (_, values) => values.map((value) => kind.show(value)), ...(incrs ? { incrs } : {}) })];
    options.series = [
      { label: "time", value: (_, value) => (value == null ? "-" : seconds(value)) },
      ...lines.map((line, index) => ({
        label: line.label, stroke: colour(COLOURS[index % 6]), width: 1.6, dash: line.dash ?? DASHES[index % 6], spanGaps: true,
        paths: uPlot.paths.stepped({ align: -1 }), points: { show: false },
        value: (_, value) => (value == null ? "-" : kind.show(value)),
      })),
    ];
    return { uplot: new uPlot(options, joined, box), isTime: true, columns: ["end", ...lines.map((line) => line.label)], show: [seconds, ...lines.map(() => kind.show)], data: joined };
  }

  const QUANTILE_TICKS = [[2, "p50"], [10, "p90"], [100, "p99"], [1e3, "p99.9"], [1e4, "p99.99"], [1e5, "p99.999"], [1e6, "p99.9999"]];
  function drawQuantiles(box) {
    const lines = data.runs.flatMap((run) => ["response", "delivery", "service", "lag"].map((time, index) => ({ run, time, index, curve: run.curves?.[time] ?? [] })))
      .filter((line) => line.curve.length && (isOne || line.time !== "lag"));
    if (!lines.length) return empty(box);
    const joined = uPlot.join(lines.map((line) => [line.curve.map(([q]) => 1 / (1 - q)), line.curve.map(([, value]) => Math.max(value, 1))]));
    const options = base(box, 300);
    delete options.cursor.sync;
    delete options.padding;
    options.hooks = {};
    options.cursor.drag = { x: false, y: false };
    const last = joined[0][joined[0].length - 1];
    const values = joined.slice(1).flat().filter((value) => value != null);
    const [low, high] = [10 ** Math.floor(Math.log10(Math.min(...values))), 10 ** Math.ceil(Math.log10(Math.max(...values) * 1.001))];
    options.scales = { x: { time: false, distr: 3, range: [1, Math.max(last, 11)] }, y: { distr: 3, range: [low, high] } };
    const ticks = QUANTILE_TICKS.filter(([at]) => at <= Math.max(last, 11));
    options.axes = [
      axis({ size: 30, splits: () => ticks.map(([at]) => at), filter: (_, splits) => splits, values: () => ticks.map(([, text]) => text) }),
      logAxis(true),
    ];
    const label = (x) => `p${Number((100 - 100 / x).toPrecision(7))}`;
    options.series = [
      { label: "quantile", value: (_, x) => (x == null ? "-" : label(x)) },
      ...lines.map((line) => {
        const number = isOne ? line.index : data.runs.indexOf(line.run);
        return {
          label: name(line.run, line.time), stroke: colour(COLOURS[number % 6]), width: 2, spanGaps: true,
          dash: isOne ? DASHES[line.index] : DASHES[line.index], points: { show: false },
          value: (_, value) => (value == null ? "-" : nanos(value)),
        };
      }),
    ];
    return { uplot: new uPlot(options, joined, box), isTime: false, columns: ["quantile", ...lines.map((line) => name(line.run, line.time))], show: [label, ...lines.map(() => nanos)], data: joined };
  }

  function drawHeat(box, run) {
    if (!run.cells.some((cells) => cells.length)) return empty(box);
    // One scale for the maps of all runs: the same height is the same time.
    const used = data.runs.flatMap((run) => run.cells.filter((cells) => cells.length));
    const first = Math.min(...used.map(firstCell));
    const last = Math.max(...used.map((cells) => cells[0] + cells.length - 2));
    const low = Math.max(cellLowest(first), 1);
    const high = cellLowest(last + 1);
    const nulls = (column) => steps(column).map((value) => (value == null ? null : Math.max(value, low)));
    const table = [run.ends, nulls(run.response_p50_ns), nulls(run.response_p99_ns), nulls(run.response_max_ns)];
    const options = base(box, 280);
    options.scales.y = { distr: 3, range: [low, high] };
    options.axes = [timeAxis(), logAxis(false)];
    const value = (_, number) => (number == null ? "-" : nanos(number));
    const line = (label, name, dash) => ({ label, stroke: colour(name), width: 1.4, dash, paths: uPlot.paths.stepped({ align: -1 }), points: { show: false }, value });
    options.series = [
      { label: "time", value: (_, at) => (at == null ? "-" : seconds(at)) },
      line("p50", "--three", [4, 3]), line("p99", "--two"), line("max", "--five", [1, 3]),
    ];
    options.focus = { alpha: 1 };
    const readout = document.createElement("div");
    readout.className = "readout";
    options.hooks.drawAxes = [(uplot) => paint(uplot, run, first, last), shadePhases];
    options.hooks.setCursor = [(uplot) => { readout.textContent = underCursor(uplot, run); }];
    const uplot = new uPlot(options, table, box);
    const legend = document.createElement("div");
    legend.className = "readout";
    legend.innerHTML = "share of an interval's operations: few <span class=\"scale\"></span> many";
    box.append(legend, readout);
    return { uplot, isTime: true, columns: ["end", "p50", "p99", "max"], show: [seconds, nanos, nanos, nanos], data: table };
  }

  function underCursor(uplot, run) {
    const { left, top } = uplot.cursor;
    if (left == null || left < 0 || top < 0) return "";
    const at = uplot.posToVal(left, "x");
    const value = uplot.posToVal(top, "y");
    const index = run.ends.findIndex((end) => end >= at) - 1;
    const cells = run.cells[index];
    if (!cells || !cells.length) return "";
    const [lowest, ...counts] = cells;
    const row = counts.findIndex((_, above) => value < cellLowest(lowest + above + 1));
    if (row < 0 || value < cellLowest(lowest)) return "no operation here";
    const cell = lowest + row;
    return `${count(counts[row])} operations took ${nanos(cellLowest(cell))} to ${nanos(cellLowest(cell + 1))}, up to ${seconds(run.ends[index + 1])}`;
  }

  // Every pixel column sums the slices it covers, so that an hour is as quick as a minute.
  function paint(uplot, run, first, last) {
    const { left, top, width, height } = uplot.bbox;
    const [columns, rows] = [Math.round(width), Math.round(height)];
    if (columns < 1 || rows < 1) return;
    const image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const palette = heatPalette();
    const edges = [];
    for (let cell = first; cell <= last + 1; cell += 1) {
      edges.push(Math.round(uplot.valToPos(Math.max(cellLowest(cell), 1), "y", true) - top));
    }
    const { min, max } = uplot.scales.x;
    const sums = new Float64Array(last - first + 1);
    let slice = 0;
    for (let x = 0; x < columns; x += 1) {
      const from = min + ((max - min) * x) / columns;
      const to = min + ((max - min) * (x + 1)) / columns;
      while (slice < run.cells.length && run.ends[slice + 1] <= from) slice += 1;
      sums.fill(0);
      let all = 0;
      for (let at = slice; at < run.cells.length && run.ends[at] < to; at += 1) {
        const cells = run.cells[at];
        for (let index = 1; index < cells.length; index += 1) {
          sums[cells[0] - first + index - 1] += cells[index];
          all += cells[index];
        }
      }
      if (!all) continue;
      for (let cell = 0; cell < sums.length; cell += 1) {
        if (!sums[cell]) continue;
        // A thousandth of the operations is as faint as it gets; half of them as strong.
        const strength = Math.min(1, Math.max(0, 1 + Math.log10((2 * sums[cell]) / all) / 2.7));
        const pixel = palette[Math.round(strength * 255)];
        const bottom = Math.min(rows, Math.max(edges[cell], edges[cell + 1] + 1));
        for (let y = Math.max(0, edges[cell + 1]); y < bottom; y += 1) pixels[y * columns + x] = pixel;
      }
    }
    const canvas = new OffscreenCanvas(columns, rows);
    canvas.getContext("2d").putImageData(image, 0, 0);
    uplot.ctx.drawImage(canvas, Math.round(left), Math.round(top));
  }
  function heatPalette() {
    const stops = ["--heat-low", "--heat-mid", "--heat-high"].map((name) => colour(name).split(/\s+/).map(Number));
    return Array.from({ length: 256 }, (_, index) => {
      const at = index / 127.5;
      const [from, to, share] = at < 1 ? [stops[0], stops[1], at] : [stops[1], stops[2], at - 1];
      const mix = from.map((value, channel) => Math.round(value + (to[channel] - value) * share));
      return ((255 << 24) | (mix[2] << 16) | (mix[1] << 8) | mix[0]) >>> 0;
    });
  }

  function empty(box, why = "This report holds nothing to draw here.") {
    const text = document.createElement("p");
    text.className = "empty";
    text.textContent = why;
    box.style.minHeight = "0";
    box.append(text);
    box.closest("figure").querySelector("details")?.remove();
    return null;
  }

  function draw(figure) {
    const box = figure.querySelector(".canvas");
    box.replaceChildren();
    const kind = figure.dataset.plot;
    if (kind === "quantiles") return drawQuantiles(box);
    if (kind === "heat") return drawHeat(box, data.runs[Number(figure.dataset.run)]);
    return drawLines(box, KINDS[kind]);
  }

  // The table behind a plot, made when somebody opens it.
  function fillTable(figure, plot) {
    const box = figure.querySelector(".table");
    if (box.childElementCount) return;
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const column of plot.columns) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = column;
      head.append(cell);
    }
    const body = table.createTBody();
    // The first row of a plot over time stands for the start.
    for (let row = plot.isTime ? 1 : 0; row < plot.data[0].length; row += 1) {
      const line = body.insertRow();
      plot.data.forEach((column, index) => {
        const value = column[row];
        const cell = index === 0 ? document.createElement("th") : line.insertCell();
        if (index === 0) { cell.scope = "row"; line.append(cell); }
        cell.textContent = value == null ? "-" : plot.show[index](value);
        if (value != null) cell.title = String(value);
      });
    }
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", figure.querySelector("summary").textContent);
    box.append(table);
  }

  // The cursor by keyboard: values are spoken.
  function onKey(event, plot) {
    const { uplot } = plot;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const index = uplot.cursor.idx ?? 0;
    const at = plot.data[0][index];
    const actions = {
      ArrowLeft: () => put(plot, index - 1), ArrowRight: () => put(plot, index + 1),
      Home: () => put(plot, 0), End: () => put(plot, plot.data[0].length - 1),
    };
    if (plot.isTime) Object.assign(actions, {
      "+": () => scale(0.5, at), "=": () => scale(0.5, at), "-": () => scale(2, at), 0: () => show(0, END), Escape: () => show(0, END),
    });
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
  function put(plot, index) {
    const { uplot } = plot;
    const at = Math.min(Math.max(0, index), plot.data[0].length - 1);
    const x = plot.data[0][at];
    if (plot.isTime && (x < shown.from || x > shown.to)) {
      const half = (shown.to - shown.from) / 2;
      show(x - half, x + half);
    }
    uplot.setCursor({ left: uplot.valToPos(x, "x"), top: uplot.over.clientHeight / 2 });
    document.getElementById("spoken").textContent = plot.columns
      .map((column, series) => `${column} ${plot.data[series][at] == null ? "none" : plot.show[series](plot.data[series][at])}`)
      .join(", ");
  }

  function drawAll() {
    inSight.disconnect();
    for (const plot of plots.splice(0)) plot.uplot.destroy();
    for (const figure of document.querySelectorAll("figure[data-plot]")) {
      const plot = draw(figure);
      if (!plot) continue;
      plot.figure = figure;
      plots.push(plot);
      inSight.observe(figure);
      const box = figure.querySelector(".canvas");
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", `${figure.querySelector("strong").textContent}, plot. Arrow keys read the values, plus and minus zoom, 0 shows everything. The table behind it holds the same.`);
      box.onkeydown = (event) => onKey(event, plot);
      const details = figure.querySelector("details");
      details.ontoggle = () => { if (details.open) fillTable(figure, plot); };
      if (details.open) fillTable(figure, plot);
    }
    tellSpan();
  }

  for (const button of document.querySelectorAll("[data-zoom]")) button.onclick = ZOOMS[button.dataset.zoom];
  document.querySelectorAll("[data-save]").forEach((button, index) => {
    button.onclick = () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([JSON.stringify(data.runs[index].plan, null, 2)], { type: "application/json" }));
      link.download = "plan.json";
      link.click();
      URL.revokeObjectURL(link.href);
    };
  });
  document.querySelector(".zoom").hidden = false;
  drawAll();

  let width = root.clientWidth;
  new ResizeObserver(() => {
    if (root.clientWidth === width || root.dataset.print) return;
    width = root.clientWidth;
    for (const plot of plots) plot.uplot.setSize({ width: plot.figure.querySelector(".canvas").clientWidth, height: plot.uplot.height });
  }).observe(root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  // On paper everything is light, as wide as a page, and shows all of the time.
  addEventListener("beforeprint", () => {
    root.dataset.print = "";
    for (const box of document.querySelectorAll("figure .canvas")) box.style.width = "680px";
    drawAll();
  });
  addEventListener("afterprint", () => {
    delete root.dataset.print;
    for (const box of document.querySelectorAll("figure .canvas")) box.style.width = "";
    drawAll();
  });
})();
