// Calls of /v1. The token stays in this tab (sessionStorage) and goes to this server only.

const KEEPER = "retort.token";

export class Refused extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

export const token = {
    get: () => sessionStorage.getItem(KEEPER) || "",
    set: (text) => sessionStorage.setItem(KEEPER, text),
    forget: () => sessionStorage.removeItem(KEEPER),
};

export function address(path, values) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(values || {}))
        if (value !== undefined && value !== null && value !== "") query.set(name, value);
    const text = query.toString();
    return `/v1${path}${text ? "?" + text : ""}`;
}

// Returns the Response; throws Refused, or what fetch throws when nobody answers. `body` is sent as JSON.
export async function call(method, path, values, signal, body) {
    const headers = token.get() ? {Authorization: `Bearer ${token.get()}`} : {};
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const response = await fetch(address(path, values), {method, headers, cache: "no-store", credentials: "omit", redirect: "error",
        referrerPolicy: "no-referrer", signal, body: body === undefined ? undefined : JSON.stringify(body)});
    if (response.ok) return response;
    let reason = `status ${response.status}`;
    try {
        reason = (await response.json()).error || reason;
    } catch { /* no JSON: the status says enough */ }
    throw new Refused(response.status, reason);
}

export async function get(path, values, signal) {
    return (await call("GET", path, values, signal)).json();
}

export async function change(path, values, method = "POST", body = undefined) {
    return (await call(method, path, values, undefined, body)).json();
}
