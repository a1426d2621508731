// The cache: search, ages, and removal.

import {el, setText, Table} from "./element.js";
import {sentence} from "./form.js";
import * as format from "./format.js";

const LIMIT = 100;

export default {
    name: "cache",
    title: "Cache",
    every: 0,
    make(session) {
        const text = el("input", {type: "search", id: "cache-text", autocomplete: "off"});
        // What is found can be purged, so both calls take the same.
        const kind = el("select", {id: "cache-kind"}, session.parameters("post", "/cache/purge").filter((one) => !one.schema.enum)
            .map((one) => el("option", {value: one.name, selected: one.name === "host"}, sentence(one.description))));
        const more = el("button", {type: "button"}, "More");
        const count = el("p", {class: "faint", role: "status"});
        const form = el("form", {class: "card"}, el("div", {class: "row"},
            el("div", null, el("label", {for: "cache-kind"}, el("span", null, "Search by")), kind),
            el("div", null, el("label", {for: "cache-text"}, el("span", null, "for")), text),
            el("button", {type: "submit", class: "main"}, "Search"),
            session.button("operate", "Purge what is found", "Purge what is found: all objects of the search", () => this.purge())));
        const objects = new Table("Stored objects", (one) => `${one.url} ${one.vary}`, [
            {head: "URL", header: true, class: "mono", cell: (one) => one.url},
            {head: "State", cell: (one) => one.state + (one.pinned ? ", pinned" : "") + (one.on_disk ? ", on disk" : "")},
            {head: "Status", number: true, cell: (one) => one.status},
            {head: "Size", number: true, cell: (one) => format.bytes(one.size)},
            {head: "Age", number: true, cell: (one) => format.seconds(one.age)},
            {head: "Fresh for", number: true, cell: (one) => format.seconds(one.fresh_for)},
            {head: "Hits", number: true, cell: (one) => format.number(one.hits)},
            {head: "Services", cell: (one) => one.services},
            {head: "Purge", make: (one) => session.button("operate", "Purge", `Purge ${one.url}`, () => session.change(
                (answer) => `${format.count(answer.purged, "variant was", "variants were")} purged.`, "/cache/object", {url: one.url}, "DELETE"))},
        ], "No stored object was found.");
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            this.filter = this.written();
            this.after = 0;
            this.found = [];
            this.refresh();
        });
        more.addEventListener("click", () => {
            this.after = this.next;
            this.refresh();
        });
        Object.assign(this, {session, parts: {text, kind, more, count, objects}, filter: {}, after: 0, next: null, found: []});
        return [el("h1", null, "Cache"), form, el("section", null, count, objects.node, more)];
    },
    // What is written now. It counts from the next search on.
    written() {
        const wanted = this.parts.text.value.trim();
        return wanted ? {[this.parts.kind.value]: wanted} : {};
    },
    purge() {
        const filter = this.filter;
        if (Object.keys(filter).length === 0) {
            this.session.tell("Search first: for a host, the beginning of URLs, an expression or a tag.", true);
            return;
        }
        this.after = 0;
        this.session.change((answer) => answer.counted ? `${format.count(answer.purged, "object was", "objects were")} purged.` : "The objects are purged.", "/cache/purge", filter);
    },
    // An answer has what the proxy has found in a moment, which may be nothing, and where to go on.
    async load(api, signal) {
        const objects = [], filter = this.filter;
        let next = this.after || undefined;
        do {
            const answer = await api.get("/cache/objects", {...filter, limit: LIMIT - objects.length, after: next}, signal);
            objects.push(...answer.objects);
            next = answer.next;
            if (next !== null && objects.length < LIMIT) setText(this.parts.count, `Searching; ${format.count(objects.length, "object", "objects")} so far…`);
        } while (next !== null && objects.length < LIMIT);
        return {objects, next};
    },
    show({objects, next}) {
        this.found = this.after ? [...this.found, ...objects] : objects;
        this.next = next;
        this.after = 0;
        this.parts.more.hidden = next === null;
        setText(this.parts.count, `${format.count(this.found.length, "object", "objects")}${next === null ? "" : ", and there are more"}`);
        this.parts.objects.update(this.found);
    },
};
