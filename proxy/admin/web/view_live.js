// Transactions as they end, from the event stream. It is read with fetch, because EventSource can't send a token.

import {el, setText, Table} from "./element.js";
import * as format from "./format.js";

const MOST = 200; // rows

export default {
    name: "live",
    title: "Live",
    every: 0,
    make(session) {
        this.session = session;
        this.rows = [];
        this.lost = 0;
        this.number = 0;
        this.stop = null;
        const able = session.may("operate");
        const field = (name, label) => el("div", null, el("label", {for: `live-${name}`}, el("span", null, label)),
            el("input", {type: "text", id: `live-${name}`, name, autocomplete: "off", disabled: !able}));
        const form = el("form", {class: "card"}, el("div", {class: "row"}, field("host", "Host"), field("client", "Client"),
            field("status", "Status, such as 5xx"), field("result", "Result, such as HIT"),
            el("button", {type: "submit", class: "main", disabled: !able}, "Filter"),
            session.button("operate", "Pause", "Pause the list", () => this.pause())));
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            this.listen(Object.fromEntries(new FormData(form)));
        });
        this.state = el("p", {class: "faint"}, able ? "" : "Live events need the role operate.");
        this.table = new Table(`The latest ${MOST} transactions`, (one) => one.number, [
            {head: "Time", header: true, cell: (one) => one.shown},
            {head: "Client", cell: (one) => one.client || "–"},
            {head: "User", cell: (one) => one.user || "–"},
            {head: "Request", class: "url", cell: (one) => `${one.method || "?"} ${one.url || ""}`},
            {head: "Result", cell: (one) => `${one.result || ""} ${one.status || ""}`},
            {head: "Took", number: true, cell: (one) => one.ms === undefined ? "–" : format.microseconds(1000 * one.ms)},
            {head: "Bytes", number: true, cell: (one) => format.bytes(one.bytes || 0)},
            {head: "Services", cell: (one) => (one.icap || []).map((call) => `${call.service} ${call.verdict}`).join(", ") || "–"},
        ], "No transaction has ended yet.");
        if (able) this.listen({});
        return [el("h1", null, "Live transactions"), form, el("section", null, this.state, this.table.node)];
    },
    pause() {
        if (this.stop) this.stop.abort();
        this.stop = null;
        setText(this.state, "The list stands still.");
    },
    leave() {
        if (this.stop) this.stop.abort();
        this.stop = null;
        clearTimeout(this.drawing);
        this.drawing = 0;
    },
    async listen(filter) {
        this.leave();
        const mine = this.stop = new AbortController();
        try {
            const response = await this.session.api.call("GET", "/events", filter, mine.signal);
            setText(this.state, "Listening.");
            const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
            for (let rest = "";;) {
                const {done, value} = await reader.read();
                if (done) break;
                const parts = (rest + value).split("\n\n");
                rest = parts.pop();
                for (const part of parts) this.take(part);
            }
            if (this.stop === mine) setTimeout(() => this.stop === mine && this.listen(filter), 3000);
        } catch (reason) {
            if (mine.signal.aborted) return;
            setText(this.state, reason.status ? reason.message : "The proxy does not answer; the page goes on trying.");
            setTimeout(() => this.stop === mine && this.listen(filter), 3000);
        }
    },
    take(text) {
        const lines = text.split("\n"), kind = (lines.find((line) => line.startsWith("event: ")) || "").slice(7);
        const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
        if (!data) return;
        let event;
        try {
            event = JSON.parse(data);
        } catch {
            return;
        }
        if (kind === "lost") this.lost += event.lost || 0;
        else this.rows.unshift({...event, number: ++this.number, shown: format.clock(Date.now())});
        this.rows.length = Math.min(this.rows.length, MOST);
        if (!this.drawing) this.drawing = setTimeout(() => this.draw(), 200);
    },
    draw() {
        this.drawing = 0;
        setText(this.state, this.lost ? `Listening; ${this.lost} events were too many for this page.` : "Listening.");
        this.table.update(this.rows);
    },
};
