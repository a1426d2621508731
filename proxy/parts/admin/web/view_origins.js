// Groups of origins and their servers: how they are, and for administrators which get requests and how many.

import {el, setText, Table} from "./element.js";
import * as format from "./format.js";
import {ServerChange} from "./server_change.js";

const MOST = 256; // weight
const PAUSE = 400; // milliseconds without a key, until a weight counts

const state = {head: "State", make: () => el("span"), set: (node, server) => {
    setText(node, server.state);
    node.className = ["up", "found"].includes(server.state) ? "good" : server.state === "down" ? "bad" : "warn";
}};

const key = (server) => `${server.group} ${server.source || ""} ${server.url}`;

// For those who may change settings.
class Controls {
    constructor(session) {
        this.session = session;
        this.rows = new Map(); // the latest of each server
        this.keep = el("input", {type: "checkbox", id: "origins-keep"});
        this.node = el("p", null, this.keep, " ", el("label", {for: "origins-keep"}, "Keep changes of servers over a restart (saved_settings)"));
    }

    change(server) {
        return new ServerChange(this.session.api, server.group, server.url, this.keep.checked);
    }

    latest(server) {
        return this.rows.get(key(server)) || server;
    }

    // True: no other server of the group gets requests. What the table shows may be some seconds old.
    async isLast(server) {
        const {origins} = await this.session.api.get("/origins"), group = origins.find((one) => one.name === server.group);
        return !group || !group.servers.some((other) => other.state === "up" && other.url !== server.url && other.source !== server.url);
    }

    toggle(first) {
        const button = el("button", {type: "button"});
        let sure = false;
        button.addEventListener("blur", () => {
            sure = false;
            this.label(button, this.latest(first));
        });
        button.addEventListener("click", async () => {
            const server = this.latest(first), drains = server.drain;
            if (!drains && !sure && await this.isLast(server).catch(() => false)) {
                sure = true;
                this.session.tell(`${server.group} has no other server that is up: clients get errors when ${server.url} drains. Press the button again to drain it.`, true);
                return;
            }
            sure = false;
            this.session.make(drains ? `${server.url} gets new requests.` : `${server.url} gets no new requests; those under way go on.`,
                () => this.change(server).drain(!drains));
        });
        return button;
    }

    label(button, server) {
        setText(button, server.drain ? "Give requests" : "Drain");
        button.setAttribute("aria-label", server.drain ? `Give requests to ${server.url} of ${server.group}` : `Drain ${server.url} of ${server.group}`);
    }

    weight(first) {
        if (first.source) return el("span", null, String(first.weight));
        const field = el("input", {type: "number", min: 1, max: MOST, step: 1, value: first.weight, required: true,
            "aria-label": `Weight of ${first.url} of ${first.group}`});
        let timer = 0;
        const count = () => {
            clearTimeout(timer);
            timer = 0;
            const server = this.latest(first), weight = field.valueAsNumber;
            if (weight === server.weight) return;
            if (!field.checkValidity()) this.session.tell(`A weight is a number from 1 to ${MOST}.`, true);
            else this.session.make(`${server.url} has the weight ${weight}.`, () => this.change(server).weigh(weight));
        };
        field.addEventListener("input", () => {
            clearTimeout(timer);
            timer = setTimeout(count, PAUSE);
        });
        field.addEventListener("change", () => timer && count());
        return field;
    }

    undo(first) {
        return el("button", {type: "button", "aria-label": `${first.url} of ${first.group} as configured`,
            onclick: () => this.session.make(`${first.url} is again as configured.`, () => this.change(this.latest(first)).undo())}, "As configured");
    }

    columns() {
        return [
            {head: "New requests", make: (server) => server.source ? el("span", null, "see its name") : this.toggle(server),
                set: (node, server) => server.source || this.label(node, server)},
            {head: "Changed", make: (server) => el("span", null, server.source ? null : this.undo(server)), set: (node, server) => {
                const button = node.firstChild;
                if (button) button.hidden = !server.changed;
            }},
        ];
    }
}

export default {
    name: "origins",
    title: "Origins",
    every: 3,
    make(session) {
        const controls = session.may("admin") ? new Controls(session) : null;
        const weight = controls ? {head: "Weight", make: (server) => controls.weight(server), set: (node, server) => {
            if (server.source) setText(node, String(server.weight));
            else if (document.activeElement !== node) node.value = server.weight;
        }} : {head: "Weight", number: true, cell: (server) => server.weight};
        const groups = new Table("Groups", (group) => group.name, [
            {head: "Group", header: true, cell: (group) => group.name},
            {head: "Servers up", number: true, cell: (group) => `${group.servers.filter((server) => server.state === "up").length} of ${group.servers.length}`},
            {head: "Balance", cell: (group) => group.balance.replaceAll("_", " ")},
            {head: "Waiting requests", number: true, cell: (group) => format.number(group.queued)},
            {head: "Connections to each", number: true, cell: (group) => group.max_connections || "no limit"},
        ], "There are no groups of origins.");
        const servers = new Table("Servers", key, [
            {head: "Server", header: true, class: "mono", cell: (server) => server.url},
            {head: "Group", cell: (server) => server.group},
            {head: "Named by", cell: (server) => server.source ? `${server.source}, priority ${server.priority}` : "the settings"},
            state,
            ...(controls ? controls.columns() : []),
            weight,
            {head: "Backup", cell: (server) => server.backup ? "yes" : "no"},
            {head: "Under way", number: true, cell: (server) => format.number(server.active)},
            {head: "Requests", number: true, cell: (server) => format.number(server.requests)},
            {head: "Failed", number: true, cell: (server) => format.number(server.failed)},
            {head: "Times down", number: true, cell: (server) => format.number(server.times_down)},
            {head: "Next try", number: true, cell: (server) => server.retry_in === null ? "–" : format.seconds(server.retry_in)},
            {head: "Last error", cell: (server) => server.last_error || "–"},
        ], "There are no servers.");
        const names = new Table("Names whose SRV records name servers", key, [
            {head: "Name", header: true, class: "mono", cell: (name) => name.url},
            {head: "Group", cell: (name) => name.group},
            state,
            ...(controls ? controls.columns() : []),
            {head: "Servers", number: true, cell: (name) => format.number(name.servers)},
            {head: "Left out", number: true, cell: (name) => format.number(name.left_out)},
            {head: "Asked again in", number: true, cell: (name) => format.seconds(name.asked_in)},
            {head: "Last error", cell: (name) => name.last_error || "–"},
        ], "No name is looked up as SRV records.");
        this.parts = {groups, servers, names, controls};
        return [el("h1", null, "Origins"), el("section", null, groups.node), el("section", null, controls && controls.node, servers.node),
            el("section", null, names.node)];
    },
    async load(api, signal) {
        const {origins} = await api.get("/origins", null, signal);
        if (!this.parts.controls) return {origins, changes: []};
        const {changes} = await api.get("/settings/changes", null, signal);
        return {origins, changes};
    },
    show({origins, changes}) {
        const {groups, servers, names, controls} = this.parts;
        const changed = new Set(changes.map((change) => change.name));
        const more = (group, server) => ({...server, group: group.name, drain: server.drain || server.state === "drain",
            changed: changed.has(`origins.${group.name}.servers[${server.url}]`)});
        const rows = (list) => origins.flatMap((group) => group[list].map((server) => more(group, server)));
        const ofServers = rows("servers"), ofNames = rows("sources");
        if (controls) controls.rows = new Map([...ofServers, ...ofNames].map((server) => [key(server), server]));
        groups.update(origins);
        servers.update(ofServers);
        names.update(ofNames);
    },
};
