// Elements of the page. Whatever comes from the network becomes text of an element or value of a harmless attribute: nothing here
// reads HTML, and the browser refuses it too (Trusted Types).

const SVG = "http://www.w3.org/2000/svg";
const safe = /^(class|id|role|type|name|value|min|max|step|title|for|href|scope|colspan|tabindex|lang|open|alt|download|maxlength|autocomplete|placeholder|aria-[a-z]+|required|disabled|checked|selected|viewBox|preserveAspectRatio|points|x1|x2|y1|y2|src)$/;

function fill(node, properties, children) {
    for (const [name, value] of Object.entries(properties || {})) {
        if (value === undefined || value === null || value === false) continue;
        if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
        else if (!safe.test(name)) throw new Error(`attribute ${name}`);
        else if (name === "href" && !/^[#/]/.test(value)) throw new Error("a link that leads away");
        else if (name === "src" && !String(value).startsWith("blob:")) throw new Error("an image from elsewhere");
        else node.setAttribute(name, value === true ? "" : String(value));
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return node;
}

// el("p", {class: "faint"}, "text", el("b", null, "more"))
export function el(name, properties, ...children) {
    return fill(document.createElement(name), properties, children);
}

export function svg(name, properties, ...children) {
    return fill(document.createElementNS(SVG, name), properties, children);
}

export function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
}

// A table whose rows stay the same elements as long as their keys do, so that focus and what somebody types are not lost.
//     new Table("Pools", key, [{head: "Name", cell: (row) => row.name, header: true}, {head: "Jobs", number: true, cell: ...},
//                              {head: "Nice", make: () => node, set: (node, row) => ...}], "No pools.")
export class Table {
    constructor(caption, key, columns, empty) {
        this.key = key;
        this.columns = columns;
        this.rows = new Map();
        this.body = el("tbody");
        this.empty = el("p", {class: "faint"}, empty || "There are none.");
        this.table = el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": caption},
            el("table", null, el("caption", null, caption),
                el("thead", null, el("tr", null, columns.map((column) =>
                    el("th", {scope: "col", class: column.number ? "number" : undefined}, column.head)))),
                this.body));
        this.node = el("div", null, this.table, this.empty);
        this.update([]);
    }

    make(row) {
        const cells = this.columns.map((column) => {
            const cell = el(column.header ? "th" : "td", {scope: column.header ? "row" : undefined,
                class: [column.number ? "number" : "", column.class || ""].join(" ").trim() || undefined});
            if (column.make) cell.append(column.make(row));
            return cell;
        });
        return {tr: el("tr", null, cells), cells};
    }

    update(rows) {
        const kept = new Set();
        let after = null;
        for (const row of rows) {
            const key = String(this.key(row));
            if (kept.has(key)) continue;
            kept.add(key);
            if (!this.rows.has(key)) this.rows.set(key, this.make(row));
            const known = this.rows.get(key);
            this.columns.forEach((column, index) => {
                if (column.set) column.set(known.cells[index].firstChild, row);
                else if (!column.make) setText(known.cells[index], String(column.cell(row)));
            });
            const place = after ? after.nextSibling : this.body.firstChild;
            if (known.tr !== place) this.body.insertBefore(known.tr, place);
            after = known.tr;
        }
        for (const [key, known] of this.rows)
            if (!kept.has(key)) {
                known.tr.remove();
                this.rows.delete(key);
            }
        this.table.hidden = rows.length === 0;
        this.empty.hidden = rows.length > 0;
    }
}

// A list of named numbers: numbers([["Requests", "requests"], ...]) and then .set({requests: "12", ...}, {requests: "in an hour"})
export class Numbers {
    constructor(names) {
        this.values = new Map();
        this.node = el("dl", {class: "numbers"}, names.map(([label, name]) => {
            const value = el("span", null, "–"), more = el("span", {class: "more"});
            this.values.set(name, [value, more]);
            return el("div", null, el("dt", null, label), el("dd", null, value, more));
        }));
    }

    set(values, more) {
        for (const [name, [value, note]] of this.values) {
            setText(value, values[name] === undefined ? "–" : String(values[name]));
            setText(note, (more && more[name]) || "");
        }
    }
}
