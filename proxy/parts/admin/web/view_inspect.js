// Inspection: an operator chooses the next transactions, and opens one of those that are kept.

import {el, setText, Table} from "./element.js";
import * as format from "./format.js";

export default {
    name: "inspect",
    title: "Inspect",
    every: 2,
    make(session) {
        const field = (name, label, properties) => {
            const input = el("input", {type: "text", id: `inspect-${name}`, name, autocomplete: "off", disabled: !session.may("operate"), ...properties});
            return el("div", null, el("label", {for: `inspect-${name}`}, el("span", null, label)), input);
        };
        const able = session.may("operate");
        const unmasked = el("input", {type: "checkbox", id: "inspect-unmasked", name: "unmasked", disabled: !session.may("admin")});
        const form = el("form", {class: "card"}, el("h2", null, "Inspect the next requests"), el("div", {class: "row"},
            field("transactions", "How many", {type: "number", min: 1, max: 100, value: 5}), field("host", "Of the host"),
            field("prefix", "URL begins with"), field("client", "Of the client (address)"),
            field("seconds", "For at most (seconds)", {type: "number", min: 1, max: 86400, value: 300}),
            el("label", {for: "inspect-unmasked"}, unmasked, " with cookies and credentials (role admin)"),
            el("button", {type: "submit", class: "main", disabled: !able, title: able ? undefined : "This needs the role operate."}, "Inspect")));
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            const values = Object.fromEntries(new FormData(form));
            values.unmasked = unmasked.checked ? "yes" : undefined;
            session.change("The next requests that fit are inspected.", "/inspect", values);
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
