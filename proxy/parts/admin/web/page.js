// The page: who looks, which view, and asking again and again while somebody looks.

import * as api from "./api.js";
import {el, setText} from "./element.js";
import cache from "./view_cache.js";
import certificates from "./view_certificates.js";
import clients from "./view_clients.js";
import helpers from "./view_helpers.js";
import inspect from "./view_inspect.js";
import live from "./view_live.js";
import origins from "./view_origins.js";
import overview from "./view_overview.js";
import services from "./view_services.js";
import transaction from "./view_transaction.js";

const VIEWS = [overview, live, inspect, transaction, services, helpers, origins, clients, cache, certificates];
const RANKS = ["nobody", "read", "operate", "admin"];
const AGAIN = 3000; // milliseconds after a failure

const main = document.getElementById("main"), notice = document.getElementById("notice"), who = document.getElementById("who");
let me = null;       // what /v1/whoami says
let calls = {};      // the paths of /v1/openapi.json
let view = null;     // the one that is shown
let timer = 0, asking = null;
let beginning = 0, again = 0; // the latest begin(), and the timer of its next try

function tell(text, bad) {
    notice.className = bad ? "bad" : "";
    setText(notice, text);
}

// What views may use.
const session = {
    api,
    tell,
    needsToken, // is it the refusal of a token? Then the page asks for another one
    may: (role) => me !== null && RANKS.indexOf(me.role) >= RANKS.indexOf(role),
    // Is there such a call? A proxy that was built without a part has none of that part's.
    call: (method, path) => (calls[`/v1${path}`] || {})[method],
    // What a call takes; each parameter has the role that it needs.
    parameters(method, path) {
        const one = session.call(method, path);
        return one ? one.parameters.map((parameter) => ({"x-role": one["x-role"], ...parameter})) : [];
    },
    // A button for what a role may do; for others it is there and can't be used.
    button(role, text, label, press) {
        const able = session.may(role);
        return el("button", {type: "button", disabled: !able, "aria-label": label, title: able ? undefined : `This needs the role ${role}.`, onclick: press}, text);
    },
    // Asks for a change, says what became of it, and looks again. Returns the answer, or null.
    change: (done, path, values, method) => session.make(done, () => api.change(path, values, method)),
    // The same with a function that asks.
    async make(done, ask) {
        try {
            const answer = await ask();
            tell(typeof done === "function" ? done(answer) : done);
            refresh();
            return answer;
        } catch (reason) {
            if (!needsToken(reason)) tell(reason instanceof api.Refused ? reason.message : "The proxy does not answer; nothing was changed.", true);
            return null;
        }
    },
};

function needsToken(reason) {
    if (!(reason instanceof api.Refused) || reason.status !== 401) return false;
    const had = api.token.get() !== "";
    api.token.forget();
    me = null;
    askForToken(had ? "The proxy does not take this token any more, or it is wrong." : "");
    return true;
}

function askForToken(why) {
    leave();
    setText(who, "");
    document.title = "Retort: token";
    const field = el("input", {type: "password", id: "token", name: "token", autocomplete: "off", required: true});
    const form = el("form", {class: "card"}, el("h1", null, "Token"),
        el("p", null, "Type a token of admin.token_file, or use a browser with a certificate of admin.certificate_roles. The token stays in this tab until you close it. What you can do depends on its role."),
        why && el("p", {class: "bad", role: "alert"}, why),
        el("div", {class: "row"}, el("label", {for: "token"}, el("span", null, "Token")), field, el("button", {class: "main", type: "submit"}, "Look")));
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        api.token.set(field.value.trim());
        begin();
    });
    main.replaceChildren(form);
    tell("");
    field.focus();
}

function leave() {
    clearTimeout(timer);
    if (asking) asking.abort();
    if (view && view.leave) view.leave();
    view = null;
}

// A word of the address that encodes nothing is taken as it stands: people type and shorten addresses.
function decoded(word) {
    try {
        return decodeURIComponent(word);
    } catch {
        return word;
    }
}

function wanted() {
    const [name, ...rest] = location.hash.slice(1).split("/");
    return [VIEWS.find((one) => one.name === name) || VIEWS[0], rest.map(decoded)];
}

function enter() {
    if (me === null) return;
    leave();
    const [next, words] = wanted();
    view = next;
    view.refresh = refresh;
    main.replaceChildren(...[view.make(session, words)].flat());
    document.title = `${view.title} · Retort`;
    for (const link of document.querySelectorAll("#views a")) {
        if (link.dataset.view === (view.below || view.name)) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
    refresh();
}

async function refresh() {
    const shown = view;
    if (shown === null) return;
    clearTimeout(timer);
    if (asking) asking.abort();
    const mine = asking = new AbortController();
    let pause = 0;
    try {
        const data = shown.load ? await shown.load(api, mine.signal) : null;
        if (mine.signal.aborted || view !== shown) return;
        if (shown.show) shown.show(data);
        pause = shown.every * 1000;
        if (notice.dataset.lost) tell("");
        delete notice.dataset.lost;
    } catch (reason) {
        if (mine.signal.aborted || view !== shown || needsToken(reason)) return;
        notice.dataset.lost = "yes";
        tell(reason instanceof api.Refused ? reason.message : "The proxy does not answer; the page goes on trying.", true);
        pause = AGAIN;
    }
    // A tab that nobody sees asks nothing.
    if (pause > 0) timer = setTimeout(() => document.hidden ? document.addEventListener("visibilitychange", refresh, {once: true}) : refresh(), pause);
}

// The latest call counts. What an earlier one hears is of a token that has been replaced.
async function begin() {
    const mine = ++beginning;
    clearTimeout(again);
    try {
        const answer = await api.get("/whoami"), description = await api.get("/openapi.json");
        if (mine !== beginning) return;
        me = answer;
        calls = description.paths;
    } catch (reason) {
        if (mine !== beginning || needsToken(reason)) return;
        tell(reason instanceof api.Refused ? reason.message : "The proxy does not answer; the page goes on trying.", true);
        again = setTimeout(begin, AGAIN);
        return;
    }
    tell("");
    who.replaceChildren(`${me.name}, role ${me.role} `);
    if (api.token.get())
        who.append(el("button", {type: "button", onclick: () => {
            api.token.forget();
            me = null;
            askForToken("");
        }}, "Forget the token"));
    enter();
}

document.getElementById("views").append(...VIEWS.filter((one) => !one.below).map((one) => {
    const link = el("a", {href: `#${one.name}`}, one.title);
    link.dataset.view = one.name;
    return el("li", null, link);
}));
document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
});
window.addEventListener("hashchange", enter);
begin();
