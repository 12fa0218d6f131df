// Draws the report's charts from the JSON in #report-data. Texts reach the page as text nodes only, never as markup:
// names come from plans and servers. Everything drawn is also in a table.
"use strict";
(function () {
  const report = JSON.parse(document.getElementById("report-data").textContent);
  const words = report.words;
  const SYMBOLS = ["circle", "diamond", "triangle", "rect", "roundRect", "arrow"];
  const DASHES = ["solid", "dashed", "dotted"];
  const PRINT_SIZES = { sweep: [332, 280], timeline: [680, 560] };
  const drawn = [];

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue("--" + name).trim();
    const found = { series: [] };
    for (const name of ["paper", "ink", "soft", "line", "shade", "outage"]) found[name] = read(name);
    for (let i = 1; i <= 6; i++) found.series.push(read("series-" + i));
    found.font = getComputedStyle(document.body).fontFamily;
    return found;
  }

  function figure(value) {
    if (value === null || value === undefined || value !== value) return "–";
    const size = Math.abs(value);
    if (size >= 100) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(3)));
  }

  // Axis labels: millions are short, so that the axis stays narrow on a phone.
  function tick(value) {
    if (Math.abs(value) >= 1e6) return Number((value / 1e6).toPrecision(3)) + "M";
    return Number(value.toPrecision(3)).toLocaleString("en-US");
  }

  function element(name, style, text) {
    const made = document.createElement(name);
    if (style) made.style.cssText = style;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // rows: [{colour, name, value}]
  function tip(head, rows) {
    const box = element("div", "font-size:13px;line-height:1.5;font-variant-numeric:tabular-nums");
    box.append(element("div", "font-weight:600", head));
    for (const row of rows) {
      const line = element("div", "display:flex;gap:1em;justify-content:space-between");
      const name = element("span");
      name.append(element("span", "color:" + row.colour, "● "), document.createTextNode(row.name));
      line.append(name, element("span", "", row.value));
      box.append(line);
    }
    return box;
  }

  function base(c) {
    return {
      animation: false,
      backgroundColor: "transparent",
      textStyle: { fontFamily: c.font, color: c.ink },
      tooltip: {
        trigger: "axis", confine: true, backgroundColor: c.paper, borderColor: c.soft, borderWidth: 1,
        textStyle: { color: c.ink }, extraCssText: "box-shadow:none;border-radius:3px",
        axisPointer: { lineStyle: { color: c.soft } },
      },
      legend: { top: 0, left: 0, itemWidth: 30, itemGap: 14, textStyle: { color: c.ink, fontSize: 12 }, inactiveColor: c.line },
    };
  }

  function axis(c, more) {
    return Object.assign({
      axisLine: { show: true, lineStyle: { color: c.soft } },
      axisTick: { show: true, lineStyle: { color: c.soft } },
      axisLabel: { color: c.soft, fontSize: 11.5, hideOverlap: true, formatter: tick },
      splitLine: { show: false },
      nameTextStyle: { color: c.soft, fontSize: 11.5 },
    }, more);
  }

  function valueAxis(c, name, more) {
    return axis(c, Object.assign({
      type: "value", name: name, nameLocation: "end", nameGap: 10, min: 0,
      nameTextStyle: { color: c.soft, fontSize: 11.5, align: "left", padding: [0, 0, 0, -34] },
      axisLine: { show: false, onZero: false }, axisTick: { show: false },
      splitLine: { show: true, lineStyle: { color: c.line } },
    }, more));
  }

  function sweep(data, c, width) {
    const latency = data.measure === "latency";
    const counts = [...new Set(data.series.flatMap((s) => s.points.map((p) => p.c)))].sort((a, b) => a - b);
    const logX = counts.length > 2 && counts[counts.length - 1] / counts[0] >= 8;
    const at = (count) => (logX ? Math.log2(count) : count);
    const measures = latency ? ["p95", "p99"] : ["tps"];
    const series = [];
    const extremes = [];
    // All series of a side have its name: one legend entry, which shows or hides them together.
    data.series.forEach((side, i) => {
      measures.forEach((measure, j) => {
        const points = side.points.filter((p) => p[measure]);
        const colour = c.series[i % 6];
        const bars = [];
        points.forEach((p) => {
          const [mean, low, high] = p[measure];
          extremes.push(mean, low, high);
          if (high > low) bars.push([at(p.c), low], [at(p.c), high], [at(p.c), null]);
        });
        series.push({
          type: "line", name: side.target, data: points.map((p) => [at(p.c), p[measure][0]]),
          symbol: SYMBOLS[i % 6], symbolSize: 8, itemStyle: { color: colour }, z: 3,
          lineStyle: { color: colour, width: 2, type: DASHES[j] },
          report: { points: points, measure: measure, colour: colour, label: side.target + (latency ? " " + measure : "") },
        });
        series.push({
          type: "line", name: side.target, data: bars, connectNulls: false, silent: true, symbol: "rect", symbolSize: [9, 1.5],
          itemStyle: { color: colour }, lineStyle: { color: colour, width: 1.2 }, z: 2, tooltip: { show: false },
        });
      });
    });
    const positive = extremes.filter((v) => v > 0);
    const logY = latency && positive.length > 0 && Math.max(...positive) / Math.min(...positive) > 20;
    const option = base(c);
    const [first, last] = [at(counts[0]), at(counts[counts.length - 1])];
    const margin = counts.length > 1 ? (last - first) * 0.06 : 1;
    const places = counts.map(at);
    option.grid = { left: 8, right: 16, top: legendHeight(series, width) + 30, bottom: 34, outerBoundsMode: "same", outerBoundsContain: "axisLabel" };
    option.xAxis = axis(c, {
      type: "value", min: first - margin, max: last + margin, name: logX ? words.connections_log : words.connections,
      nameLocation: "middle", nameGap: 26,
      axisTick: { show: true, customValues: places, lineStyle: { color: c.soft } },
      axisLabel: {
        color: c.soft, fontSize: 11.5, hideOverlap: true, customValues: places,
        formatter: (v) => String(Math.round(logX ? 2 ** v : v)),
      },
    });
    option.yAxis = valueAxis(c, latency ? (logY ? words.ms_log : words.ms) : words.tps);
    if (logY) {
      const [low, high] = [Math.min(...positive), Math.max(...positive)];
      Object.assign(option.yAxis, { type: "log", min: 10 ** Math.floor(Math.log10(low)), max: 10 ** Math.ceil(Math.log10(high)) });
    }
    option.series = series;
    option.tooltip.formatter = (items) => {
      const place = items[0].axisValue;
      const count = Math.round(logX ? 2 ** place : place);
      const rows = [];
      for (const one of series) {
        const point = one.report && one.report.points.find((p) => p.c === count);
        if (!point) continue;
        const [mean, low, high] = point[one.report.measure];
        const range = high > low ? "  (" + figure(low) + "–" + figure(high) + ")" : "";
        rows.push({ colour: one.report.colour, name: one.report.label, value: figure(mean) + range });
      }
      return tip(count + " " + words.connections, rows);
    };
    return option;
  }

  // Rows that the legend will take: an item is its symbol, a gap and about 6.5 pixels a letter.
  function legendHeight(series, width) {
    let rows = 1;
    let used = 0;
    for (const name of new Set(series.map((s) => s.name))) {
      const item = 50 + [...name].reduce((sum, letter) => sum + (letter > "\u2e80" ? 12.5 : 6.8), 0);
      if (used > 0 && used + item > width) {
        rows += 1;
        used = 0;
      }
      used += item;
    }
    return rows * 22;
  }

  function timeline(data, c, chosen, width, height) {
    const trials = chosen.filter((n) => n !== null).map((n) => data.trials[n]);
    const targets = [...new Set(data.trials.map((t) => t.target))];
    const option = base(c);
    const named = trials.map((trial) => ({ name: trial.workload + " · " + trial.label }));
    const top = legendHeight(named, width) + 26;
    const gap = 42;
    const room = height - top - 50 - 2 * gap;
    const parts = [0.45, 0.4, 0.15].map((share) => Math.round(room * share));
    let from = top;
    option.grid = parts.map((tall) => {
      const grid = { left: 56, right: 16, top: from, height: tall, outerBoundsMode: "none" };
      from += tall + gap;
      return grid;
    });
    const lengths = (t) => (i) => (Array.isArray(t.seconds) ? t.seconds[i] : t.seconds);
    const begin = Math.min(...trials.map((t) => t.begin[0]));
    const end = Math.max(...trials.map((t) => t.begin[t.begin.length - 1] + lengths(t)(t.begin.length - 1)));
    option.xAxis = parts.map((_, i) => axis(c, {
      type: "value", gridIndex: i, min: begin, max: end, axisLabel: { show: i === 2, color: c.soft, fontSize: 11.5, hideOverlap: true, showMinLabel: false, showMaxLabel: false, formatter: tick },
      name: i === 2 ? words.seconds : "", nameLocation: "middle", nameGap: 26,
    }));
    const quiet = trials.every((t) => t.errors.every((rate) => rate === 0));
    option.yAxis = [words.tps, words.ms + ": p95, p50", words.errors].map((name, i) =>
      valueAxis(c, name, { gridIndex: i, splitNumber: i === 2 ? 2 : 4, max: i === 2 && quiet ? 1 : null }));
    option.axisPointer = { link: [{ xAxisIndex: "all" }] };
    option.series = [];
    trials.forEach((trial, place) => {
      const same = place === 1 && trials[0].target === trial.target;
      const colour = c.series[(targets.indexOf(trial.target) + (same ? 1 : 0)) % 6];
      const name = trial.workload + " · " + trial.label;
      const few = trial.begin.length <= 60;
      const middle = trial.begin.map((b, i) => b + lengths(trial)(i) / 2);
      const line = (grid, values, more) => Object.assign({
        type: "line", name: name, xAxisIndex: grid, yAxisIndex: grid, data: middle.map((x, i) => [x, values[i]]),
        symbol: SYMBOLS[place], showSymbol: few, symbolSize: 5, connectNulls: false, itemStyle: { color: colour },
        lineStyle: { color: colour, width: 1.8, type: DASHES[place] }, report: { trial: trial, colour: colour },
      }, more);
      option.series.push(line(0, trial.tps), line(1, trial.p95));
      option.series.push(line(1, trial.p50, { showSymbol: false, lineStyle: { color: colour, width: 1, type: DASHES[place], opacity: 0.75 } }));
      option.series.push(line(2, trial.errors, { step: "middle", showSymbol: false, areaStyle: { color: colour, opacity: 0.25 } }));
    });
    shade(option.series, trials, c, begin);
    option.tooltip.formatter = (items) => {
      const x = items[0].axisValue;
      const rows = [];
      trials.forEach((trial, place) => {
        const i = nearest(trial, lengths(trial), x);
        if (i < 0) return;
        const one = option.series[place * 4].report;
        rows.push({
          colour: one.colour, name: trials.length > 1 ? trial.target : "",
          value: [
            figure(trial.tps[i]) + "/s", "p95 " + figure(trial.p95[i]) + " ms", "p50 " + figure(trial.p50[i]) + " ms",
            figure(trial.errors[i]) + " " + words.errors,
          ].join(" · "),
        });
      });
      return tip(Number(x.toPrecision(4)) + " s", rows);
    };
    return option;
  }

  function nearest(trial, length, x) {
    return trial.begin.findIndex((b, i) => x >= b && x <= b + length(i));
  }

  // Warm-up and outages, as areas behind the first trial's curves in every grid.
  function shade(series, trials, c, begin) {
    const done = new Set();
    for (const one of series) {
      if (done.has(one.xAxisIndex)) continue;
      done.add(one.xAxisIndex);
      const label = { show: one.xAxisIndex === 0, color: c.soft, fontSize: 11, position: "insideTop" };
      const areas = [];
      if (begin < 0) areas.push([{ xAxis: begin, name: words.warmup, itemStyle: { color: c.shade }, label: label }, { xAxis: 0 }]);
      for (const trial of trials) {
        trial.outages.forEach((outage, i) => areas.push([
          { xAxis: outage[0], name: i === 0 ? words.outage + " " + outage[3] : "", itemStyle: { color: c.outage, borderColor: c.outage, borderWidth: 1 }, label: label },
          { xAxis: outage[1] },
        ]));
      }
      one.markArea = { silent: true, data: areas };
    }
  }

  function chosenOf(number) {
    return [0, 1].map((place) => {
      const select = document.getElementById("choice-" + number + "-" + place);
      return select && select.value !== "" ? Number(select.value) : null;
    });
  }

  function draw(one) {
    const data = report.charts[one.number];
    const c = colours();
    const chosen = data.kind === "timeline" ? chosenOf(one.number) : null;
    const option = data.kind === "timeline" ? timeline(data, c, chosen, one.chart.getWidth(), one.chart.getHeight()) : sweep(data, c, one.chart.getWidth());
    one.chart.setOption(option, { notMerge: true });
  }

  function start() {
    for (const plot of document.querySelectorAll("[data-chart]")) {
      const number = Number(plot.dataset.chart);
      const one = { plot: plot, number: number, kind: report.charts[number].kind, chart: echarts.init(plot, null, { renderer: "svg" }) };
      drawn.push(one);
      draw(one);
      for (const place of [0, 1]) {
        const select = document.getElementById("choice-" + number + "-" + place);
        if (select) select.addEventListener("change", () => draw(one));
      }
    }
  }

  // A sheet of paper has its own width: charts are laid out anew for it, and folded details are opened.
  let printing = false;
  function toPaper() {
    if (printing) return;
    printing = true;
    for (const fold of document.querySelectorAll("details:not([open])")) {
      fold.open = true;
      fold.dataset.folded = "yes";
    }
    for (const one of drawn) {
      const [width, height] = PRINT_SIZES[one.kind];
      one.chart.resize({ width: width, height: height });
      draw(one);
    }
  }
  function toScreen() {
    if (!printing) return;
    printing = false;
    for (const fold of document.querySelectorAll("details[data-folded]")) {
      fold.open = false;
      delete fold.dataset.folded;
    }
    for (const one of drawn) {
      one.chart.resize({ width: "auto", height: "auto" });
      draw(one);
    }
  }

  start();
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (printing) return;
      for (const one of drawn) {
        one.chart.resize();
        draw(one);
      }
    }, 100);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(draw));
  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", toScreen);
  matchMedia("print").addEventListener("change", (print) => (print.matches ? toPaper() : toScreen()));
})();
