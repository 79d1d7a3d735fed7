// SPDX-License-Identifier: Apache-2.0
// A tar writer that writes whatever it is told, also what no honest tar would.

const TYPES = { file: '0', hardlink: '1', symlink: '2', char: '3', block: '4', dir: '5', fifo: '6', pax: 'x' };

function octal(value, width) {
  return `${value.toString(8).padStart(width - 1, '0')}\0`;
}

function header({ name, type, mode, size, target, uid = 0, gid = 0, mtime = 1_700_000_000, major = 0, minor = 0 }) {
  const block = Buffer.alloc(512);
  Buffer.from(name).copy(block, 0, 0, 100);
  block.write(octal(mode, 8), 100, 'latin1');
  block.write(octal(uid, 8), 108, 'latin1');
  block.write(octal(gid, 8), 116, 'latin1');
  block.write(octal(size, 12), 124, 'latin1');
  block.write(octal(mtime, 12), 136, 'latin1');
  block.write('        ', 148, 'latin1');
  block.write(TYPES[type], 156, 'latin1');
  Buffer.from(target).copy(block, 157, 0, 100);
  block.write('ustar\x0000', 257, 'latin1');
  block.write(octal(major, 8), 329, 'latin1');
  block.write(octal(minor, 8), 337, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

const padded = (data) => Buffer.concat([data, Buffer.alloc((512 - (data.length % 512)) % 512)]);

/** items: { name, data?, type = 'file', mode?, target?, size? (a lie about the data) ... } */
export function tar(items) {
  const blocks = [];
  for (const item of items) {
    const { type = item.data === undefined && item.target === undefined ? 'dir' : 'file', target = '' } = item;
    const data = Buffer.from(item.data ?? '');
    blocks.push(header({ ...item, type, target, mode: item.mode ?? (type === 'dir' ? 0o755 : 0o644), size: item.size ?? data.length }));
    blocks.push(padded(data));
  }
  blocks.push(Buffer.alloc(1024));
  return Buffer.concat(blocks);
}

/** A pax extended header, to be put before the entry that it speaks of. */
export function pax(records) {
  const data = Object.entries(records).map(([key, value]) => {
    const body = ` ${key}=${value}\n`;
    let length = Buffer.byteLength(body) + 1;
    while (String(length).length + Buffer.byteLength(body) !== length) length++;
    return `${length}${body}`;
  }).join('');
  return { name: 'PaxHeaders/x', type: 'pax', data };
}
