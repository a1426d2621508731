// Recorded bodies: undone of their coding, as an image if they are one, else as text. Only images of raster formats that the page
// recognises by their first bytes become images; everything else stays text.

const MOST = 4 << 20; // bytes after decoding

const RASTERS = [["image/png", [0x89, 0x50, 0x4e, 0x47]], ["image/jpeg", [0xff, 0xd8, 0xff]], ["image/gif", [0x47, 0x49, 0x46, 0x38]]];

export function rasterType(bytes) {
    const found = RASTERS.find(([, first]) => first.every((byte, index) => bytes[index] === byte));
    if (found) return found[0];
    const text = String.fromCharCode(...bytes.slice(0, 12));
    return text.startsWith("RIFF") && text.slice(8) === "WEBP" ? "image/webp" : null;
}

export function field(head, name) {
    const line = (head || "").split("\r\n").slice(1).find((one) => one.toLowerCase().startsWith(name + ":"));
    return line ? line.slice(name.length + 1).trim() : "";
}

// What can be decoded of it; a body that was cut ends earlier.
export async function decoded(bytes, head) {
    const coding = field(head, "content-encoding").toLowerCase();
    const format = {gzip: "gzip", "x-gzip": "gzip", deflate: "deflate"}[coding];
    if (!format || bytes.length === 0) return {bytes, coding};
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format)).getReader(), parts = [];
    let length = 0;
    try {
        for (;;) {
            const {done, value} = await reader.read();
            if (done) break;
            parts.push(value);
            length += value.length;
            if (length > MOST) break;
        }
    } catch { /* it was cut off, or it lies about its coding: what came before is shown */ }
    reader.cancel().catch(() => {});
    const whole = new Uint8Array(length);
    parts.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
    return {bytes: whole.slice(0, MOST), coding};
}

export function isText(bytes) {
    return !bytes.slice(0, 4096).some((byte) => byte === 0);
}

export function asText(bytes, head) {
    const label = /charset="?([^\s;"]+)/i.exec(field(head, "content-type"));
    try {
        return new TextDecoder(label ? label[1] : "utf-8").decode(bytes);
    } catch {
        return new TextDecoder().decode(bytes);
    }
}
