// Transactions as they end.

import {el, setText, Table} from "./element.js";
import {Events} from "./events.js";
import {field} from "./form.js";
import * as format from "./format.js";

const MOST = 200; // rows

export default {
    name: "live",
    title: "Live",
    every: 0,
    make(session) {
        this.rows = [];
        this.lost = 0;
        this.number = 0;
        this.drawing = 0;
        this.events = new Events(session, (event) => this.take(event), (lost) => this.lose(lost), (text) => this.say(text));
        const able = session.may("operate");
        const form = el("form", {class: "card"}, el("div", {class: "row"},
            session.parameters("get", "/events").map((one) => field(session, "live", one)),
            el("button", {type: "submit", class: "main", disabled: !able}, "Filter"),
            session.button("operate", "Pause", "Pause the list", () => this.pause())));
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            this.events.listen(Object.fromEntries(new FormData(form)));
        });
        this.state = el("p", {class: "faint"});
        this.say(able ? "" : "Live events need the role operate.");
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
        if (able) this.events.listen({});
        return [el("h1", null, "Live transactions"), form, el("section", null, this.state, this.table.node)];
    },
    pause() {
        this.leave();
        this.table.update(this.rows);
        this.say("The list stands still.");
    },
    leave() {
        this.events.leave();
        clearTimeout(this.drawing);
        this.drawing = 0;
    },
    say(text) {
        this.said = text;
        setText(this.state, this.lost ? `${text} ${this.lost} events were too many for this page.` : text);
    },
    lose(lost) {
        this.lost += lost;
        this.drawSoon();
    },
    take(event) {
        this.rows.unshift({...event, number: ++this.number, shown: format.clock(Date.now())});
        this.rows.length = Math.min(this.rows.length, MOST);
        this.drawSoon();
    },
    drawSoon() {
        if (!this.drawing) this.drawing = setTimeout(() => this.draw(), 200);
    },
    draw() {
        this.drawing = 0;
        this.say(this.said);
        this.table.update(this.rows);
    },
};
