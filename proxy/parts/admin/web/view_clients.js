// Clients: whom access sections and limits have refused, and who has used how much.

import {el, Numbers, setText, Table} from "./element.js";
import {Events} from "./events.js";
import * as format from "./format.js";

const MOST = 200; // clients that were denied

export default {
    name: "clients",
    title: "Clients",
    every: 4,
    make(session) {
        this.session = session;
        const numbers = new Numbers([["Denied", "client_denied"], ["Asked for credentials", "access_challenged"], ["Limited", "limit_refused"],
            ["Wrong credentials", "identity_refused"], ["Slowed down", "identity_slowed"], ["Machine's own addresses", "destinations_denied"],
            ["Malformed requests", "client_bad_requests"], ["Connections refused", "client_connections_rejected"]]);
        const denied = new Table(`Clients that were denied since this view was opened; the latest ${MOST}`, (one) => one.client, [
            {head: "Client", header: true, cell: (one) => one.client},
            {head: "User", cell: (one) => one.user || "–"},
            {head: "Denied", number: true, cell: (one) => format.number(one.times)},
            {head: "Last at", number: true, cell: (one) => one.shown},
            {head: "Last request", class: "url", cell: (one) => `${one.method || "?"} ${one.url || ""}`},
            {head: "Status", number: true, cell: (one) => one.status || "–"},
            {head: "By", cell: (one) => one.limit ? `limit ${one.limit}` : one.access ? `access ${one.access}` : "–"},
            {head: "Why", cell: (one) => one.error || "–"},
        ], "Nobody was denied anything since this view was opened.");
        const access = new Table("Access sections, in their order", (one) => one.number, [
            {head: "Number", header: true, number: true, cell: (one) => one.number},
            {head: "Class", cell: (one) => one.class},
            {head: "Action", cell: (one) => one.action + (one.log_only ? " (only logged)" : "")},
            {head: "Decided", number: true, cell: (one) => format.number(one.decided)},
            {head: "Would have decided", number: true, cell: (one) => format.number(one.logged)},
        ], "There are no access sections.");
        const limited = new Table("Who has used how much of the limit sections; at most 1000", (one) => `${one.section} ${one.client} ${one.connections}`, [
            {head: "Client", header: true, cell: (one) => one.client},
            {head: "Section", cell: (one) => one.section + (one.connections ? " (connections)" : "")},
            {head: "Under way", number: true, cell: (one) => format.number(one.active)},
            {head: "Taken", number: true, cell: (one) => format.number(one.taken)},
            {head: "Refused", number: true, cell: (one) => format.number(one.refused)},
            {head: "Free again in", number: true, cell: (one) => format.seconds(Math.max(one.requests_back, one.download_back, one.upload_back))},
            {head: "Begin anew", make: (one) => session.button("operate", "Clear", `Clear: let ${one.client} begin anew in ${one.section}`,
                () => session.change((answer) => `${format.count(answer.cleared, "entry is", "entries are")} cleared.`, "/limits/clear", {section: one.section, client: one.client}))},
        ], "No client has used anything of a limit.");
        this.denied = new Map();
        this.parts = {numbers, access, limited, denied, state: el("p", {class: "faint"}, "Who is denied is shown to the role operate.")};
        this.events = new Events(session, (event) => this.take(event), () => {}, (text) => setText(this.parts.state, text));
        if (session.may("operate")) this.events.listen({result: "DENIED"});
        return [el("h1", null, "Clients that were denied or limited"), numbers.node, el("section", null, this.parts.state, denied.node),
            el("section", null, limited.node), el("section", null, access.node)];
    },
    leave() {
        this.events.leave();
    },
    // The latest stands on top.
    take(event) {
        const client = event.client || "–", times = (this.denied.get(client) || {times: 0}).times + 1;
        this.denied.delete(client);
        this.denied.set(client, {...event, client, times, shown: format.clock(Date.now())});
        if (this.denied.size > MOST) this.denied.delete(this.denied.keys().next().value);
        this.parts.denied.update([...this.denied.values()].reverse());
    },
    async load(api, signal) {
        const ask = (path) => this.session.call("get", path) ? api.get(path, null, signal) : {};
        const [status, access, limits] = await Promise.all(["/status", "/access", "/limits"].map(ask));
        return {status, access, limits};
    },
    show({status, access, limits}) {
        this.parts.numbers.set(Object.fromEntries(Object.entries(status.counters).map(([name, value]) => [name, format.number(value)])));
        this.parts.access.update(access.access || []);
        this.parts.limited.update([...limits.list || []].sort((one, other) => other.refused - one.refused));
    },
};
