// Charts of lines. Each has a sentence for screen readers and its numbers as a table.
//     const chart = new Chart("Requests a second", [["from the cache", (p) => p.hits]], format);
//     chart.update(points)                  points have `at` in milliseconds, the oldest first

import {el, setText, svg} from "./element.js";
import {clock} from "./format.js";

const WIDTH = 600, HEIGHT = 120, ROWS = 24;

export class Chart {
    constructor(title, series, format) {
        this.title = title;
        this.series = series;
        this.format = format;
        this.lines = series.map((_, index) => svg("path", {class: `series-${index + 1}`}));
        this.image = svg("svg", {class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
            "aria-label": `${title}: no samples yet`},
            [0, 0.5, 1].map((at) => svg("line", {class: "grid", x1: 0, x2: WIDTH, y1: at * HEIGHT, y2: at * HEIGHT})), this.lines);
        this.most = el("span");
        this.now = series.map(() => el("span"));
        this.from = el("span");
        this.to = el("span");
        this.body = el("tbody");
        this.details = el("details", null, el("summary", null, `The numbers of “${title}”`),
            el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": title},
                el("table", null, el("thead", null, el("tr", null, el("th", {scope: "col"}, "Time"),
                    series.map(([name]) => el("th", {scope: "col", class: "number"}, name)))), this.body)));
        this.details.addEventListener("toggle", () => this.tabulate());
        this.points = [];
        this.node = el("figure", null, el("figcaption", null, title), el("div", {class: "axis"}, this.most), this.image,
            el("div", {class: "axis"}, this.from, this.to),
            el("ul", {class: "legend"}, series.map(([name], index) => el("li", null,
                svg("svg", {viewBox: "0 0 24 8", "aria-hidden": "true"},
                    svg("line", {class: `series-${index + 1}`, x1: 0, x2: 24, y1: 4, y2: 4})), `${name}: `, this.now[index]))),
            this.details);
    }

    update(points) {
        this.points = points;
        const values = points.map((point) => this.series.map(([, value]) => value(point)));
        const most = Math.max(...values.flat().filter(Number.isFinite), 0);
        const first = points.length ? points[0].at : 0, last = points.length ? points[points.length - 1].at : 0;
        const x = (at) => last > first ? WIDTH * (at - first) / (last - first) : WIDTH;
        const y = (value) => most > 0 ? HEIGHT * (1 - value / most) : HEIGHT;
        this.lines.forEach((line, index) => line.setAttribute("d", points.map((point, at) => {
            if (!Number.isFinite(values[at][index])) return "";
            const begins = at === 0 || !Number.isFinite(values[at - 1][index]);
            return `${begins ? "M" : "L"}${x(point.at).toFixed(1)} ${y(values[at][index]).toFixed(1)}${begins ? "h.01" : ""}`;
        }).join("")));
        setText(this.most, points.length ? `up to ${this.format(most)}` : "no samples yet");
        setText(this.from, points.length ? clock(first) : "");
        setText(this.to, points.length ? clock(last) : "");
        const latest = values[values.length - 1] || [];
        this.now.forEach((node, index) => setText(node, Number.isFinite(latest[index]) ? this.format(latest[index]) : "–"));
        this.image.setAttribute("aria-label", points.length
            ? `${this.title}: ` + this.series.map(([name], index) => `${name} ${this.now[index].textContent}`).join(", ") +
              `; up to ${this.format(most)} since ${clock(first)}` : `${this.title}: no samples yet`);
        this.tabulate();
    }

    tabulate() {
        if (!this.details.open) return;
        const step = Math.max(1, Math.ceil(this.points.length / ROWS));
        const rows = this.points.filter((_, index) => (this.points.length - 1 - index) % step === 0).reverse();
        this.body.replaceChildren(...rows.map((point) => el("tr", null, el("th", {scope: "row"}, clock(point.at)),
            this.series.map(([, value]) => el("td", {class: "number"}, Number.isFinite(value(point)) ? this.format(value(point)) : "–")))));
    }
}
