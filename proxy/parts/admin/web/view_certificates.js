// Certificates of listeners, and what interception has learnt of clients that refuse certificates.

import {el, Table} from "./element.js";
import * as format from "./format.js";

const KINDS = {authority: "the proxy's authority", issuer: "issuer that is shown", ca: "authorities", crl: "revocation lists",
    certificate: "the proxy's own certificate"};

export default {
    name: "certificates",
    title: "Certificates",
    every: 10,
    make(session) {
        const certificates = new Table("Certificates of listeners", (one) => `${one.listen} ${one.file} ${one.name}`, [
            {head: "Name", header: true, cell: (one) => one.name},
            {head: "Listener", cell: (one) => one.listen},
            {head: "Days left", number: true, make: () => el("span"), set: (node, one) => {
                node.textContent = String(one.days);
                node.className = one.days < 7 ? "bad" : one.days < 30 ? "warn" : "good";
            }},
            {head: "Expires", cell: (one) => one.expires},
            {head: "Key", cell: (one) => one.kind},
            {head: "OCSP", cell: (one) => one.ocsp},
            {head: "File", class: "mono", cell: (one) => one.file},
        ], "No listener has a certificate.");
        const trust = new Table("What certificates are signed and verified with", (one) => `${one.kind} ${one.place} ${one.file}`, [
            {head: "File", header: true, class: "mono", cell: (one) => one.file},
            {head: "Kind", cell: (one) => KINDS[one.kind] || one.kind},
            {head: "Of", cell: (one) => one.place},
            {head: "Days left", number: true, make: () => el("span"), set: (node, one) => {
                node.textContent = String(one.days);
                node.className = one.days < (one.kind === "crl" ? 1 : 7) ? "bad" : one.days < (one.kind === "crl" ? 2 : 30) ? "warn" : "good";
            }},
            {head: "Expires", cell: (one) => one.expires},
            {head: "First to end", cell: (one) => one.name},
        ], "No section names a file of authorities or revocation lists.");
        const refusals = new Table("Clients that refuse the proxy's certificates, and servers that ask for certificates", (one) => `${one.client} ${one.host}`, [
            {head: "Client", header: true, cell: (one) => one.client || "all clients"},
            {head: "Server", cell: (one) => one.host},
            {head: "Times", number: true, cell: (one) => one.count},
            {head: "Connections", cell: (one) => one.spliced ? "relayed unopened" : "still opened"},
            {head: "Forgotten in", number: true, cell: (one) => format.seconds(one.left)},
            {head: "Open again", make: (one) => session.button("operate", "Forget", `Forget the refusals of ${one.client || "all clients"} for ${one.host}`,
                () => session.change((answer) => `${format.count(answer.cleared, "refusal is", "refusals are")} forgotten.`, "/intercept/clear", {client: one.client, host: one.host}))},
        ], "No client has refused a certificate.");
        this.parts = {certificates, trust, refusals, counts: el("p", {class: "faint"})};
        return [el("h1", null, "Certificates and interception"), el("section", null, certificates.node),
            el("section", null, trust.node),
            el("section", null, el("h2", null, "Interception"), this.parts.counts, refusals.node)];
    },
    async load(api, signal) {
        const [status, intercept] = await Promise.all([api.get("/status", null, signal), api.get("/intercept", null, signal)]);
        return {status, intercept};
    },
    show({status, intercept}) {
        const count = (name) => format.number(status.counters[name]);
        this.parts.certificates.update(status.certificates);
        this.parts.trust.update(status.trust);
        this.parts.refusals.update([...intercept.refusals, ...intercept.asking.map((one) => ({...one, client: ""}))]);
        this.parts.counts.textContent = `${count("intercept_bumped")} connections were opened, ${count("intercept_spliced")} relayed as they are, ` +
            `${count("intercept_exempt")} of them because of what the table shows; ${count("intercept_blocked")} were blocked, ` +
            `${count("intercept_untrusted")} had a server that can not be trusted.`;
    },
};
