// SPDX-License-Identifier: Apache-2.0
// What the host has, and what is left of it: from the figures that a monitor reads too.
import { useQuery } from '@tanstack/react-query';

import { request } from '../../api/client';
import { Meter } from '../../components/Basics';
import { bytes } from '../../lib/format';
import { text } from '../../text/en';

/** Figures by their names; those of one name with different labels are one. */
async function read(signal: AbortSignal): Promise<Record<string, number>> {
  const figures: Record<string, number> = {};
  for (const line of (await (await request('GET', '/metrics', { signal })).text()).split('\n')) {
    const [, name, state, value] = /^sandlot_(\w+)(?:\{state="(\w+)"\})? (\S+)$/.exec(line) ?? [];
    if (!name) continue;
    figures[name] = (figures[name] ?? 0) + Number(value);
    if (state) figures[`${name}_${state}`] = Number(value);
  }
  return figures;
}

export function Capacity() {
  const { data } = useQuery({ queryKey: ['metrics'], queryFn: ({ signal }) => read(signal), refetchInterval: 5000, staleTime: 0 });
  const of = (name: string) => data?.[name] ?? 0;
  const rows: { name: string; value: string; most?: string; used: number; limit?: number }[] = [
    { name: text.host.memory, value: bytes(of('host_memory_bytes') - of('host_memory_available_bytes')), most: bytes(of('host_memory_bytes')), used: of('host_memory_bytes') - of('host_memory_available_bytes'), limit: of('host_memory_bytes') },
    { name: text.host.diskOfData, value: bytes(of('data_disk_bytes') - of('data_disk_free_bytes')), most: bytes(of('data_disk_bytes')), used: of('data_disk_bytes') - of('data_disk_free_bytes'), limit: of('data_disk_bytes') },
    { name: text.host.running, value: String(of('sandboxes_running')), most: String(of('sandboxes')), used: 0 },
    { name: text.host.processes, value: String(of('process_places_used')), used: 0 },
    { name: text.host.ofDaemon, value: bytes(of('resident_memory_bytes')), used: 0 },
  ];
  return <div className="meters many">{rows.map(({ name, value, most, used, limit }) => <div key={name} className="card figure"><div className="small muted">{name}</div><div className="value number">{data ? value : '–'}{data && most && <span className="most">{text.ofAll(most)}</span>}</div><Meter label={name} used={used} limit={limit} /></div>)}</div>;
}
