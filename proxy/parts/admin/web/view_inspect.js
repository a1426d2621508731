// Inspection: an operator chooses the next transactions, and opens one of those that are kept.

import {el, setText, Table} from "./element.js";
import {field} from "./form.js";
import * as format from "./format.js";

const BEGINS = {transactions: 5, seconds: 300};

export default {
    name: "inspect",
    title: "Inspect",
    every: 2,
    make(session) {
        const able = session.may("operate");
        const form = el("form", {class: "card"}, el("h2", null, "Inspect the next requests"), el("div", {class: "row"},
            session.parameters("post", "/inspect").map((one) => field(session, "inspect", one, BEGINS[one.name])),
            el("button", {type: "submit", class: "main", disabled: !able, title: able ? undefined : "This needs the role operate."}, "Inspect")));
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            session.change("The next requests that fit are inspected.", "/inspect", Object.fromEntries(new FormData(form)));
        });
        const state = el("p", {class: "faint"});
        const list = new Table("Inspected transactions, the newest first", (one) => one.id, [
            {head: "Time", header: true, cell: (one) => format.clock(one.at)},
            {head: "Client", cell: (one) => one.client || "–"},
            {head: "Request", class: "url", make: (one) => el("a", {href: `#transaction/${one.id}`}, `${one.method || "?"} ${one.url || "(nothing that could be read)"}`)},
            {head: "Result", cell: (one) => one.active ? "under way" : `${one.result || ""} ${one.status || ""}`},
            {head: "Took", number: true, cell: (one) => format.microseconds(one.took)},
            {head: "Bytes", number: true, cell: (one) => format.bytes(one.bytes)},
            {head: "Exchanges", number: true, cell: (one) => one.exchange_count},
        ], "No transaction is kept. Inspect the next ones, and load a page through the proxy.");
        this.parts = {state, list};
        return [el("h1", null, "Inspect"), form, el("section", null, state, list.node,
            session.button("operate", "Stop", "Stop the inspection", () => session.change("The inspection has ended.", "/inspect/stop")), " ",
            session.button("operate", "Clear", "Clear the list of inspected transactions",
                () => session.change((answer) => `${format.count(answer.cleared, "transaction is", "transactions are")} forgotten.`, "/inspect/clear")))];
    },
    load: (api, signal) => api.get("/inspect", null, signal),
    show(data) {
        setText(this.parts.state, data.under_way
            ? `Waiting for ${format.count(data.left, "more request", "more requests")}, for ${format.seconds(data.seconds_left)} at most.`
            : "No inspection is in progress.");
        this.parts.list.update(data.transactions);
    },
};
