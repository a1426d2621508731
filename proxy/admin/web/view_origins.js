// Groups of origins and their servers.

import {el, Table} from "./element.js";
import * as format from "./format.js";

export default {
    name: "origins",
    title: "Origins",
    every: 3,
    make() {
        const groups = new Table("Groups", (group) => group.name, [
            {head: "Group", header: true, cell: (group) => group.name},
            {head: "Servers up", number: true, cell: (group) => `${group.servers.filter((server) => server.state === "up").length} of ${group.servers.length}`},
            {head: "Balance", cell: (group) => group.balance.replaceAll("_", " ")},
            {head: "Waiting requests", number: true, cell: (group) => format.number(group.queued)},
            {head: "Connections to each", number: true, cell: (group) => group.max_connections || "no limit"},
        ], "There are no groups of origins.");
        const servers = new Table("Servers", (server) => `${server.group} ${server.url}`, [
            {head: "Server", header: true, class: "mono", cell: (server) => server.url},
            {head: "Group", cell: (server) => server.group},
            {head: "Named by", cell: (server) => server.source ? `${server.source}, priority ${server.priority}` : "the settings"},
            {head: "State", make: () => el("span"), set: (node, server) => {
                node.textContent = server.state;
                node.className = server.state === "up" ? "good" : server.state === "down" ? "bad" : "warn";
            }},
            {head: "Weight", number: true, cell: (server) => server.weight + (server.backup ? ", backup" : "")},
            {head: "Under way", number: true, cell: (server) => format.number(server.active)},
            {head: "Requests", number: true, cell: (server) => format.number(server.requests)},
            {head: "Failed", number: true, cell: (server) => format.number(server.failed)},
            {head: "Times down", number: true, cell: (server) => format.number(server.times_down)},
            {head: "Next try", number: true, cell: (server) => server.retry_in === null ? "–" : format.seconds(server.retry_in)},
            {head: "Last error", cell: (server) => server.last_error || "–"},
        ], "There are no servers.");
        this.parts = {groups, servers};
        return [el("h1", null, "Origins"), el("section", null, groups.node), el("section", null, servers.node)];
    },
    load: (api, signal) => api.get("/origins", null, signal),
    show({origins}) {
        this.parts.groups.update(origins);
        this.parts.servers.update(origins.flatMap((group) => group.servers.map((server) => ({...server, group: group.name}))));
    },
};
