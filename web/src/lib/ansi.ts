// SPDX-License-Identifier: Apache-2.0
// Colours of a command's output. Other control sequences are dropped: only a terminal can follow them.
export interface Piece { text: string; marks: string }

// eslint-disable-next-line no-control-regex
const SEQUENCE = /\x1b(?:\[([0-9;?]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])/g;

/** The text in pieces, each with the names of classes for its colours (a31, a1). */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let marks: string[] = [];
  let at = 0;
  const push = (end: number) => { if (end > at) found.push({ text: clean(text.slice(at, end)), marks: marks.join(' ') }); };
  for (const match of text.matchAll(SEQUENCE)) {
    push(match.index);
    at = match.index + match[0].length;
    if (match[2] === 'm') marks = applied(marks, match[1]);
  }
  push(text.length);
  return found;
}

function applied(marks: string[], codes: string): string[] {
  let after = marks;
  const numbers = codes.split(';').map(Number);
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i];
    if (code === 0) after = [];
    else if (code === 38 || code === 48) i += numbers[i + 1] === 5 ? 2 : 4; // colours of a larger palette: left as they are
    else if (code === 39) after = after.filter((mark) => !/^a[39]\d$/.test(mark));
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) after = [...after.filter((mark) => !/^a[39]\d$/.test(mark)), `a${code}`];
    else if (code === 1 || code === 4) after = [...after, `a${code}`];
  }
  return after;
}

/** A line that was written over by carriage returns is what was written last. */
const clean = (text: string) => text.replaceAll('\r\n', '\n').replace(/[^\n]*\r(?=[^\n])/g, '').replaceAll('\r', '');
