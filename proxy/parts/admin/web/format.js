// Numbers as people read them.

export function number(value) {
    if (value >= 1e6) return scaled(value, ["", "k", "M", "G", "T"], 1000);
    return value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toFixed(value >= 10 ? 1 : 2);
}

// "1 object", "2 objects"
export function count(value, one, many) {
    return `${number(value)} ${value === 1 ? one : many}`;
}

export function bytes(value) {
    return scaled(value, ["B", "KB", "MB", "GB", "TB", "PB"], 1024);
}

function scaled(value, units, base) {
    const sign = value < 0 ? "−" : "";
    let left = Math.abs(value), unit = 0;
    for (; left >= base && unit + 1 < units.length; unit++) left /= base;
    const digits = unit === 0 ? Math.round(left) : left.toFixed(left >= 100 ? 0 : left >= 10 ? 1 : 2);
    return `${sign}${digits} ${units[unit]}`.trim();
}

export function microseconds(value) {
    if (value < 1000) return `${Math.round(value)} µs`;
    return value < 1e6 ? `${(value / 1000).toPrecision(3)} ms` : `${(value / 1e6).toPrecision(3)} s`;
}

export function percent(part, whole) {
    return whole > 0 ? `${(100 * part / whole).toFixed(1)} %` : "–";
}

export function seconds(value) {
    const whole = Math.round(Math.abs(value)), sign = value < 0 ? "−" : "";
    if (whole < 120) return `${sign}${whole} s`;
    if (whole < 7200) return `${sign}${Math.round(whole / 60)} min`;
    return whole < 172800 ? `${sign}${Math.round(whole / 3600)} h` : `${sign}${Math.round(whole / 86400)} days`;
}

export function clock(milliseconds) {
    return new Date(milliseconds).toLocaleTimeString("en-GB");
}

export function date(milliseconds) {
    const at = new Date(milliseconds);
    return `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")} ${clock(milliseconds)}`;
}
