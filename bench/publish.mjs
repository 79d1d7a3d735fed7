// SPDX-License-Identifier: Apache-2.0
// Writes the figures of one whole run into docs/speed.md, all of them, with the machine that they are of:
// node bench/publish.mjs [RESULTS.json]
import { readFileSync, writeFileSync } from 'node:fs'

const results = JSON.parse(readFileSync(process.argv[2] ?? new URL('results/latest.json', import.meta.url), 'utf8'))
const guide = new URL('../docs/speed.md', import.meta.url)

/** What stands between two comments is replaced. */
function replace(text, name, by) {
  const [begin, end] = [`<!-- bench ${name} -->\n`, `<!-- end of bench ${name} -->`]
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`docs/speed.md has no ${begin.trim()}`)
  return text.slice(0, from + begin.length) + by + text.slice(to)
}

const { machine, versions, started_at, rows } = results
const about = `Measured on ${started_at.slice(0, 10)}: ${machine.cores} cores (${machine.cpu}), ${machine.memory_gib} GiB, Linux ${machine.kernel.split('-')[0]}, ${machine.disk}, in a
virtual machine, nothing beside it. The others are Docker ${versions.docker.split('+')[0]}, crun ${versions.crun}, bubblewrap ${versions.bwrap} and nginx ${versions.nginx}.
`
const line = ({ what, sandlot, peer = '', ratio = '', goal = '', ok }) => `| ${[what, sandlot, peer, ratio, goal && ok === false ? `${goal} (missed)` : goal].join(' | ')} |`
const table = ['| what | Sandlot | peer | ratio | goal |', '|---|---|---|---|---|', ...rows.map(line)].join('\n')

let text = readFileSync(guide, 'utf8')
text = replace(text, 'machine', about)
text = replace(text, 'table', `${table}\n`)
writeFileSync(guide, text)
