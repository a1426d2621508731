// One inspected transaction: its steps on a time line, its heads, and each exchange with a service: what went there, what came
// back, and what the service changed.

import {asText, decoded, isText, rasterType} from "./body.js";
import {difference, hasTooManyLines} from "./difference.js";
import {el} from "./element.js";
import * as format from "./format.js";

const CONTEXT = 3, LINES = 1500;

function steps(list) {
    const end = Math.max(...list.map((step) => step.begun + step.took), 1);
    const bar = (step) => {
        const node = el("span", {title: `${format.microseconds(step.took)} from ${format.microseconds(step.begun)} on`});
        node.style.left = `${100 * step.begun / end}%`;
        node.style.width = `${100 * step.took / end}%`;
        return el("td", {class: "bar"}, node);
    };
    return el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Steps"}, el("table", {class: "timeline"},
        el("caption", null, "Steps; the bars show when each began and how long it took"),
        el("thead", null, el("tr", null, ["Step", "Began", "Took", "Time line", "What it found out"].map((head) => el("th", {scope: "col"}, head)))),
        el("tbody", null, list.map((step) => el("tr", null, el("th", {scope: "row"}, step.step),
            el("td", {class: "number"}, format.microseconds(step.begun)), el("td", {class: "number"}, format.microseconds(step.took)), bar(step),
            el("td", null, step.found || "–", step.awaited ? el("div", {class: "faint"}, `waited ${format.microseconds(step.waited)} for ${step.awaited}`) : null))))));
}

// null: there are too many.
function lines(parts) {
    if (parts === null) return el("p", {class: "faint"}, "There are too many lines to show them here.");
    const pre = el("pre", {tabindex: "0"});
    for (const [kind, line] of parts.slice(0, LINES))
        pre.append(el("span", {class: `line-${kind}`}, `${{same: "  ", added: "+ ", removed: "− "}[kind]}${line}\n`));
    if (parts.length > LINES) pre.append(`… and ${parts.length - LINES} more lines`);
    return pre;
}

// Only what differs, with some lines around it.
function narrow(parts) {
    if (parts === null) return null;
    const near = parts.map(([kind], index) => kind !== "same" ||
        parts.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(([other]) => other !== "same"));
    const shown = [];
    parts.forEach((part, index) => {
        if (near[index]) shown.push(part);
        else if (index === 0 || near[index - 1]) shown.push(["same", "…"]);
    });
    return shown;
}

function heads(before, after) {
    if (!after || before === after) return [el("h3", null, "Head, not changed"), el("pre", {tabindex: "0"}, before || "none")];
    return [el("h3", null, "Head: what the service changed"), lines(difference(before || "", after))];
}

function shownBody(name, body, type) {
    const node = el("div", null, el("h3", null, name), el("p", {class: "faint"}, body.note));
    if (type) {
        const image = el("img", {alt: `${name} of the service`});
        image.src = URL.createObjectURL(new Blob([body.bytes], {type}));
        body.made.push(image.src);
        image.addEventListener("load", () => node.append(el("p", {class: "faint"}, `${image.naturalWidth} × ${image.naturalHeight}`)));
        node.append(image);
    }
    return node;
}

function verdict(exchange) {
    const seconds = (name) => exchange[name] ? format.microseconds(exchange[name]) : "–";
    return el("dl", {class: "numbers"}, [["Verdict", exchange.verdict || "none yet"], ["ICAP status", exchange.icap_status || "–"],
        ["Until the verdict", seconds("verdict_microseconds")], ["Until the end", seconds("total_microseconds")],
        ["Body to the service", format.bytes(exchange.virgin_length || 0)], ["Body that it made", exchange.result_given ? format.bytes(exchange.result_length || 0) : "none"],
        ["Preview", (/^Preview: *(\d+)/im.exec(exchange.asked || "") || [null, "none"])[1]]]
        .map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, String(value)))));
}

export default {
    name: "transaction",
    title: "Transaction",
    below: "inspect",
    every: 0,
    make(session, [id]) {
        this.id = id || "";
        this.session = session;
        this.urls = [];
        this.place = el("div", null, el("p", {class: "faint"}, "Loading…"));
        return [el("h1", null, "Transaction"), el("p", null, el("a", {href: "#inspect"}, "Back to the list")), this.place];
    },
    leave() {
        this.urls.forEach((url) => URL.revokeObjectURL(url));
    },
    load(api, signal) {
        return api.get("/inspect/transaction", {id: this.id}, signal);
    },
    show(one) {
        const facts = [["Request", `${one.method} ${one.url}`], ["Client", one.client], ["User", one.user], ["Time", format.date(one.at)],
            ["Result", `${one.result || "under way"} ${one.status || ""}`], ["Took", format.microseconds(one.took)], ["Sent", format.bytes(one.bytes)],
            ["Error", one.error], ["Id", one.id], ["Left out", one.left_out ? `${one.left_out} parts, for want of memory` : null]];
        this.place.replaceChildren(
            el("section", null, el("table", null, el("caption", null, "What became of it"), el("tbody", null, facts.filter(([, value]) => value)
                .map(([name, value]) => el("tr", null, el("th", {scope: "row"}, name), el("td", {class: "url"}, value)))))),
            el("section", null, el("h2", null, "Steps"), steps(one.steps)),
            el("section", null, el("h2", null, "Heads"), el("div", {class: "side"},
                [["From the client", one.heads.request], ["From the origin", one.heads.origin_response], ["Of the response", one.heads.response]]
                    .filter(([, head]) => head).map(([name, head]) => el("div", null, el("h3", null, name), el("pre", {tabindex: "0"}, head))))),
            el("section", null, el("h2", null, "Services"), one.services.length === 0 ? el("p", {class: "faint"}, "No service was asked.")
                : el("ol", null, one.services.map((service) => el("li", null,
                    `${service.service} at ${service.point}: ${service.verdict} after ${service.milliseconds} ms${service.error ? `; ${service.error}` : ""}`)))),
            ...one.exchanges.map((exchange, index) => exchange && this.exchange(exchange, index)).filter(Boolean));
        this.place.dataset.shown = one.id;
    },
    exchange(exchange, index) {
        const before = exchange.response_head || exchange.request_head;
        const bodies = el("div", null, el("p", {class: "faint"}, exchange.virgin_given || exchange.result_given ? "Loading the bodies…" : "There was no body."));
        const node = el("section", {class: "exchange"}, el("h2", null, `${exchange.service} (${exchange.point})`), verdict(exchange),
            exchange.error ? el("p", {class: "bad"}, exchange.error) : null, ...heads(before, exchange.result_head), bodies,
            el("details", null, el("summary", null, "The ICAP heads"), el("h3", null, "Asked"), el("pre", {tabindex: "0"}, exchange.asked || "none"),
                el("h3", null, "Answered"), el("pre", {tabindex: "0"}, exchange.answered || "none")));
        if (exchange.virgin_given || exchange.result_given)
            this.bodies(exchange, index, before).then((shown) => bodies.replaceChildren(...shown),
                (reason) => bodies.replaceChildren(el("p", {class: "bad"}, reason.message)));
        return node;
    },
    async body(index, part, head, exchange) {
        const kept = exchange[`${part}_kept`], length = exchange[`${part}_length`] || 0;
        const response = await this.session.api.call("GET", "/inspect/body", {id: this.id, exchange: index, part});
        const raw = new Uint8Array(await response.arrayBuffer()), {bytes, coding} = await decoded(raw, head);
        const cut = kept < length ? `, of which ${format.bytes(kept)} are kept` : "", whole = exchange[`${part}_whole`] ? "" : ", not read to the end";
        return {bytes, head, made: this.urls, note: `${format.bytes(length)}${cut}${whole}${coding ? `, ${coding}` : ""}`};
    },
    async bodies(exchange, index, before) {
        const old = await this.body(index, "virgin", before, exchange);
        const now = exchange.result_given ? await this.body(index, "result", exchange.result_head || before, exchange) : null;
        const types = [rasterType(old.bytes), now && rasterType(now.bytes)];
        const side = el("div", {class: "side"}, shownBody("Before", old, types[0]), now && shownBody("After", now, types[1]));
        if (types[0] || types[1]) return [side];
        if (!isText(old.bytes) || (now && !isText(now.bytes))) return [side, el("p", {class: "faint"}, "The body is no text.")];
        const text = asText(old.bytes, before);
        if (!now) return [side, el("details", null, el("summary", null, "The body"), lines(hasTooManyLines(text) ? null : text.split("\n").map((line) => ["same", line])))];
        return [side, el("h3", null, "Body: what the service changed"), lines(narrow(difference(text, asText(now.bytes, now.head))))];
    },
};
