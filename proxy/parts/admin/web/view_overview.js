// Traffic, hits, latency and bytes saved: now and in the last hours.

import {Chart} from "./chart.js";
import {el, Numbers} from "./element.js";
import * as format from "./format.js";

const POINTS = 180;
const SPANS = [["hour", "the last hour", 3600e3], ["six", "the last 6 hours", 6 * 3600e3], ["day", "the last 24 hours", 24 * 3600e3]];
const LEVELS = new Set(["connections", "active"]), LATENCIES = new Set(["mean", "p50", "p90", "p99"]);

// Samples are added up until there are at most so many points. Latencies become the largest of them, levels the last.
function thin(samples, names, most) {
    const group = Math.max(1, Math.ceil(samples.length / most)), points = [];
    for (let i = samples.length; i > 0; i -= group) {
        const part = samples.slice(Math.max(0, i - group), i), point = {};
        names.forEach((name, index) => {
            const values = part.map((sample) => sample[index]);
            point[name] = name === "at" || LEVELS.has(name) ? values[values.length - 1]
                : LATENCIES.has(name) ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0);
        });
        points.unshift(point);
    }
    return points;
}

const rate = (name) => (point) => point.lasted > 0 ? 1000 * point[name] / point.lasted : NaN;
const perSecond = (value) => `${format.number(value)}/s`;
const bytesPerSecond = (value) => `${format.bytes(value)}/s`;

export default {
    name: "overview",
    title: "Overview",
    every: 5,
    make() {
        const now = new Numbers([["Requests", "requests"], ["Hits", "hits"], ["Latency, 9 of 10", "latency"], ["Bytes saved", "saved"],
            ["Connections", "connections"], ["Cache", "cache"], ["Refused", "refused"], ["Up", "uptime"]]);
        const charts = [
            new Chart("Requests a second", [["all", rate("requests")], ["hits", rate("hits")], ["misses", rate("misses")]], perSecond),
            new Chart("Share of hits", [["hits of lookups", (p) => p.hits + p.misses > 0 ? 100 * p.hits / (p.hits + p.misses) : NaN]],
                (value) => `${value.toFixed(1)} %`),
            new Chart("Latency", [["mean", (p) => p.measured ? p.mean : NaN], ["9 of 10 within", (p) => p.measured ? p.p90 : NaN],
                ["99 of 100 within", (p) => p.measured ? p.p99 : NaN]], format.microseconds),
            new Chart("Bytes a second", [["to clients", rate("bytes_out")], ["from origins", rate("origin_bytes_in")],
                ["in tunnels", rate("tunnel_bytes")]], bytesPerSecond),
            new Chart("Services", [["asked", rate("asked")], ["changed", rate("adapted")], ["failed", rate("service_failures")]], perSecond),
            new Chart("Refused and failed", [["denied", rate("denied")], ["limited", rate("limited")], ["origins failed", rate("failures")],
                ["clients left", rate("aborts")]], perSecond),
        ];
        const span = el("select", {id: "span"}, SPANS.map(([name, label]) => el("option", {value: name}, label)));
        span.addEventListener("change", () => this.refresh && this.refresh());
        this.parts = {now, charts, span};
        return [el("h1", null, "Overview"), now.node,
            el("p", null, el("label", {for: "span"}, "Curves and sums of"), span), el("div", {class: "charts"}, charts.map((chart) => chart.node))];
    },
    async load(api, signal) {
        const day = this.parts.span.value === "day";
        const [status, history] = await Promise.all([api.get("/status", null, signal),
            api.get("/history", day ? {day: "yes"} : {}, signal)]);
        return {status, history};
    },
    show({status, history}) {
        this.every = Math.min(5, history.step / 1000);
        const [, label, length] = SPANS.find(([name]) => name === this.parts.span.value);
        const samples = history.samples.filter((sample) => sample[0] > history.now - length);
        const points = thin(samples, history.names, POINTS), [last] = thin(samples.slice(-1), history.names, 1), [sum] = thin(samples, history.names, 1);
        for (const chart of this.parts.charts) chart.update(points);
        const values = {connections: format.number(status.counters.client_connections_open), uptime: format.seconds(status.uptime),
            cache: format.bytes(status.cache.bytes)};
        const more = {cache: `${format.number(status.cache.objects)} objects, of ${format.bytes(status.cache.limit)}`,
            connections: `${format.number(status.counters.transactions_active)} requests under way`,
            uptime: `${status.state}, version ${status.version}` + (status.workers_silent ? `, ${status.workers_silent} workers silent` : "")};
        if (last) {
            Object.assign(values, {requests: perSecond(rate("requests")(last)), hits: format.percent(last.hits, last.hits + last.misses),
                latency: last.measured ? format.microseconds(last.p90) : "–", saved: bytesPerSecond(rate("bytes_out")(last) - rate("origin_bytes_in")(last)),
                refused: perSecond(rate("denied")(last) + rate("limited")(last))});
            Object.assign(more, {requests: `${format.number(sum.requests)} in ${label}`,
                hits: `${format.percent(sum.hits, sum.hits + sum.misses)} in ${label}`,
                latency: last.measured ? `mean ${format.microseconds(last.mean)}` : "no requests",
                saved: `${format.bytes(sum.bytes_out - sum.origin_bytes_in)} in ${label}`,
                refused: `${format.number(sum.denied + sum.limited)} in ${label}`});
        }
        this.parts.now.set(values, more);
    },
};
