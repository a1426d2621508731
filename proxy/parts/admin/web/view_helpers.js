// The pools of helper processes: their CPU, their queue, and a slider for their priority.

import {el, setText, Table} from "./element.js";
import * as format from "./format.js";

export default {
    name: "helpers",
    title: "Helpers",
    every: 2,
    make(session) {
        this.before = null;
        const slider = (pool) => {
            const value = el("output", null, String(pool.nice));
            const range = el("input", {type: "range", min: 0, max: 19, step: 1, value: Math.max(0, pool.nice), "aria-label": `Nice level of ${pool.name}`,
                disabled: !session.may("operate")});
            range.addEventListener("input", () => setText(value, range.value));
            range.addEventListener("change", () => session.change(`The pool ${pool.name} has the nice level ${range.value}.`, "/helpers/renice",
                {pool: pool.name, nice: range.value}));
            return el("span", null, range, " ", value);
        };
        const pools = new Table("Pools; CPU in percent of one core", (pool) => pool.name, [
            {head: "Pool", header: true, cell: (pool) => pool.name},
            {head: "Nice", make: slider, set: (node, pool) => {
                const [range, value] = [node.firstChild, node.lastChild];
                if (document.activeElement === range) return;
                range.value = Math.max(0, pool.nice);
                setText(value, String(pool.nice));
            }},
            {head: "CPU", number: true, cell: (pool) => pool.cpu === undefined ? "–" : `${pool.cpu.toFixed(0)} %`},
            {head: "Processes", number: true, cell: (pool) => `${pool.workers.filter((worker) => worker.state === "busy").length} of ${pool.workers.length} at work`},
            {head: "Queue", number: true, cell: (pool) => `${pool.queued} of ${pool.queue}`},
            {head: "Jobs/s", number: true, cell: (pool) => pool.jobs === undefined ? "–" : format.number(pool.jobs)},
            {head: "Changed", number: true, cell: (pool) => format.number(pool.served)},
            {head: "Unchanged", number: true, cell: (pool) => format.number(pool.unchanged)},
            {head: "Failed", number: true, cell: (pool) => format.number(pool.failed)},
            {head: "Too late", number: true, cell: (pool) => format.number(pool.timeouts)},
            {head: "Refused", number: true, cell: (pool) => format.number(pool.refused)},
            {head: "Restarts", number: true, cell: (pool) => format.number(pool.restarts)},
            {head: "Mean", number: true, cell: (pool) => `${format.number(pool.mean_ms)} ms`},
            {head: "Breaker", cell: (pool) => pool.breaker},
        ], "There are no pools.");
        const workers = new Table("Processes", (worker) => worker.pid, [
            {head: "Process", header: true, number: true, cell: (worker) => worker.pid},
            {head: "Pool", cell: (worker) => worker.pool},
            {head: "State", cell: (worker) => worker.state + (worker.spare ? ", the spare for small jobs" : "")},
            {head: "Nice", number: true, cell: (worker) => worker.nice === undefined ? "–" : worker.nice},
            {head: "Jobs", number: true, cell: (worker) => format.number(worker.served)},
            {head: "CPU", number: true, cell: (worker) => format.microseconds(1000 * worker.cpu_ms)},
            {head: "Age", number: true, cell: (worker) => worker.seconds === undefined ? "–" : format.seconds(worker.seconds)},
        ], "There are no processes.");
        this.parts = {pools, workers};
        return [el("h1", null, "Helpers"), el("section", null, pools.node), el("section", null, workers.node)];
    },
    load: (api, signal) => api.get("/helpers", null, signal),
    show({pools}) {
        const now = performance.now();
        for (const pool of pools) {
            const then = this.before && this.before.pools.find((other) => other.name === pool.name);
            if (!then) continue;
            const seconds = (now - this.before.now) / 1000;
            pool.cpu = Math.max(0, (pool.cpu_ms - then.cpu_ms) / 10 / seconds);
            pool.jobs = Math.max(0, (pool.served + pool.unchanged - then.served - then.unchanged) / seconds);
        }
        this.before = {now, pools};
        this.parts.pools.update(pools);
        this.parts.workers.update(pools.flatMap((pool) => pool.workers.map((worker) => ({...worker, pool: pool.name}))));
    },
};
