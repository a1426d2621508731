// The services: their state, their verdicts, how long these took, and what failed.

import {el, Table} from "./element.js";
import * as format from "./format.js";

const failures = (service) => Object.entries(service.account).filter(([name, count]) => name.startsWith("error_") && count > 0);

function endpoints(service) {
    return service.endpoints.map((endpoint) => [endpoint.uri, endpoint.state, endpoint.error || "", endpoint.notice || "",
        endpoint.retry_in !== undefined ? `asked again in ${format.seconds(endpoint.retry_in)}` : ""].filter(Boolean).join(", ")).join("; ");
}

function state(node, text) {
    node.textContent = text;
    node.className = text === "up" ? "good" : text === "down" ? "bad" : "warn";
}

export default {
    name: "services",
    title: "Services",
    every: 3,
    make(session) {
        const count = (head, name) => ({head, number: true, cell: (service) => format.number(service.account[name])});
        const time = (head, name) => ({head, number: true,
            cell: (service) => service.times.verdict_seconds && service.times.verdict_seconds.count ? format.microseconds(1e6 * service.times.verdict_seconds[name]) : "–"});
        const verdicts = new Table("Verdicts, and the time until they come", (service) => service.name, [
            {head: "Service", header: true, cell: (service) => service.name},
            {head: "State", make: () => el("span"), set: (node, service) => state(node, service.state)},
            count("Asked", "requests"), count("Unmodified", "unmodified"), count("Modified", "modified"), count("Partial", "partial"),
            count("Answered", "satisfied"), count("Remembered", "remembered"), count("Bypassed", "bypassed"),
            {head: "Failed", number: true, cell: (service) => format.number(failures(service).reduce((sum, [, n]) => sum + n, 0))},
            time("Half within", "p50"), time("9 of 10", "p90"), time("99 of 100", "p99"),
            {head: "Waiting", number: true, cell: (service) => format.number(service.pending)},
        ], "There are no services.");
        const more = new Table("What they are, and what failed", (service) => service.name, [
            {head: "Service", header: true, cell: (service) => service.name},
            {head: "Point", cell: (service) => service.point},
            {head: "Says", cell: (service) => [service.service, service.istag && `ISTag ${service.istag}`].filter(Boolean).join(", ") || "–"},
            {head: "Endpoints", class: "mono", cell: endpoints},
            {head: "Failures", cell: (service) => failures(service).map(([name, n]) => `${name.slice(6)} ${n}`).join(", ") || "none"},
            {head: "Bytes out, in", number: true, cell: (service) => `${format.bytes(service.account.bytes_out)}, ${format.bytes(service.account.bytes_in)}`},
            {head: "Earlier results", make: (service) => session.button("operate", "Make old", `Make old all earlier results of ${service.name}`,
                () => session.change(`The results of ${service.name} are old now.`, "/services/bump", {name: service.name}))},
        ], "There are no services.");
        this.parts = {verdicts, more};
        return [el("h1", null, "Services"), el("section", null, verdicts.node), el("section", null, more.node)];
    },
    load: (api, signal) => api.get("/services", null, signal),
    show({services}) {
        this.parts.verdicts.update(services);
        this.parts.more.update(services);
    },
};
