// SPDX-License-Identifier: Apache-2.0
// Random numbers that a seed repeats. Each client and the faults have a stream of their own, so that what one of them
// draws does not depend on how fast the others are.
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

export class Random {
  constructor(seed) {
    this.state = seed >>> 0;
  }

  /** A number from 0 to below 1 (mulberry32). */
  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from low to high. */
  integer(low, high) {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  pick(list) {
    return list[this.integer(0, list.length - 1)];
  }

  /** One of { name: weight }. */
  weighted(weights) {
    let left = this.next() * Object.values(weights).reduce((sum, weight) => sum + weight, 0);
    for (const [name, weight] of Object.entries(weights)) {
      left -= weight;
      if (left < 0) return name;
    }
    return Object.keys(weights).at(-1);
  }

  bytes(length) {
    return Buffer.from(Array.from({ length }, () => this.integer(0, 255)));
  }

  /** An id for a sandbox; its time is of no account. */
  id() {
    return `01${Array.from({ length: 24 }, () => this.pick([...ALPHABET])).join('')}`;
  }

  /** A stream of its own that follows from this one. */
  branch() {
    return new Random(this.integer(0, 2 ** 32 - 1));
  }
}
