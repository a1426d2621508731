// The difference of two texts by lines: [["same" | "added" | "removed", line], ...]. What is too long to compare line by line, is
// shown as removed and added whole. null: a text has so many lines that a browser would stand still.

const MOST = 2000; // lines that differ, before the comparison is given up
const LINES = 50000; // of a text

export function hasTooManyLines(text) {
    let at = -1;
    for (let line = 0; line < LINES; line++)
        if ((at = text.indexOf("\n", at + 1)) < 0) return false;
    return true;
}

export function difference(before, after) {
    if (hasTooManyLines(before) || hasTooManyLines(after)) return null;
    const old = before.split("\n"), now = after.split("\n");
    let head = 0, tail = 0;
    while (head < old.length && head < now.length && old[head] === now[head]) head++;
    while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++;
    const middle = changed(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
    return [...old.slice(0, head).map((line) => ["same", line]), ...middle, ...old.slice(old.length - tail).map((line) => ["same", line])];
}

// The longest common subsequence, where that is not too much work.
function changed(old, now) {
    if (old.length > MOST || now.length > MOST)
        return [...old.map((line) => ["removed", line]), ...now.map((line) => ["added", line])];
    const width = now.length + 1, lengths = new Uint16Array((old.length + 1) * width);
    for (let i = old.length - 1; i >= 0; i--)
        for (let j = now.length - 1; j >= 0; j--)
            lengths[i * width + j] = old[i] === now[j] ? lengths[(i + 1) * width + j + 1] + 1
                : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    const lines = [];
    let i = 0, j = 0;
    while (i < old.length || j < now.length) {
        if (i < old.length && j < now.length && old[i] === now[j]) {
            lines.push(["same", old[i++]]);
            j++;
        } else if (j === now.length || (i < old.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]))
            lines.push(["removed", old[i++]]);
        else
            lines.push(["added", now[j++]]);
    }
    return lines;
}
