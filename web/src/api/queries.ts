// SPDX-License-Identifier: Apache-2.0
// What pages read, and the verbs of a sandbox.
import { QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';

import { ApiError, call, listAll, part } from './client';
import { place, readSandboxes } from './live';
import type { DriverList, Function as Kept, FunctionList, Network, Ports, Process, Project, Quota, Sandbox, Secret, Snapshot, Stats, Template, Token, Version } from './schema';

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      refetchOnWindowFocus: false,
      retry: (count, error) => !(error instanceof ApiError && error.status >= 400 && error.status < 500) && count < 3,
      retryDelay: (count) => Math.min(500 * 2 ** count, 4000),
    },
  },
});

/** The path of a sandbox, and of something that belongs to it. */
export const sandboxPath = (id: string, rest = '') => `/v1/sandboxes/${part(id)}${rest}`;

export const useSandboxes = () => useQuery({ queryKey: ['sandboxes'], queryFn: ({ signal }) => readSandboxes(signal), staleTime: 60_000 });
export const useSandbox = (id: string) => useQuery<Sandbox>({
  queryKey: ['sandbox', id], queryFn: ({ signal }) => call<Sandbox>('GET', sandboxPath(id), { signal }),
  placeholderData: () => client.getQueryData<Sandbox[]>(['sandboxes'])?.find((one) => one.id === id || one.name === id),
});
export const useStats = (id: string, isOn: boolean, every_ms = 2000) => useQuery({
  queryKey: ['stats', id], queryFn: ({ signal }) => call<Stats>('GET', sandboxPath(id, '/stats'), { signal }), enabled: isOn, refetchInterval: every_ms, staleTime: 0,
});
export const useProcesses = (id: string, every_ms: number | false = 3000) => useQuery({
  queryKey: ['processes', id], queryFn: ({ signal }) => listAll<Process>(sandboxPath(id, '/processes'), 'processes', {}, signal), refetchInterval: every_ms, staleTime: 0,
});
export const usePorts = (id: string, isOn: boolean) => useQuery({
  queryKey: ['ports', id], queryFn: ({ signal }) => call<Ports>('GET', sandboxPath(id, '/ports'), { signal }), enabled: isOn, refetchInterval: 3000, staleTime: 0,
});
export const useNetwork = (id: string) => useQuery({ queryKey: ['network', id], queryFn: ({ signal }) => call<Network>('GET', sandboxPath(id, '/network'), { signal }), refetchInterval: 4000, staleTime: 0 });
export const useTemplates = () => useQuery({ queryKey: ['templates'], queryFn: ({ signal }) => listAll<Template>('/v1/templates', 'templates', {}, signal) });
export const useSnapshots = (sandbox?: string) => useQuery({ queryKey: ['snapshots', sandbox ?? ''], queryFn: ({ signal }) => listAll<Snapshot>('/v1/snapshots', 'snapshots', { sandbox }, signal) });
export const useProjects = () => useQuery({ queryKey: ['projects'], queryFn: ({ signal }) => listAll<Project>('/v1/projects', 'projects', {}, signal) });
export const useFunctions = () => useQuery({ queryKey: ['functions'], queryFn: ({ signal }) => call<FunctionList>('GET', '/v1/functions', { signal }).then((answer): Kept[] => answer.functions) });
export const useTokens = () => useQuery({ queryKey: ['tokens'], queryFn: ({ signal }) => listAll<Token>('/v1/tokens', 'tokens', {}, signal) });
export const useSecrets = () => useQuery({ queryKey: ['secrets'], queryFn: ({ signal }) => call<{ secrets: Secret[] }>('GET', '/v1/secrets', { signal }).then((answer) => answer.secrets) });
export const useQuotas = () => useQuery({ queryKey: ['quotas'], queryFn: ({ signal }) => call<{ quotas: Quota[] }>('GET', '/v1/quotas', { signal }).then((answer) => answer.quotas) });
export const useVersion = () => useQuery({ queryKey: ['version'], queryFn: ({ signal }) => call<Version>('GET', '/v1/version', { signal }), staleTime: Infinity });
export const useDriver = () => useQuery({ queryKey: ['drivers'], queryFn: ({ signal }) => call<DriverList>('GET', '/v1/drivers', { signal }), staleTime: Infinity, select: (list) => list.drivers.find((driver) => driver.used) });

export type Verb = 'start' | 'stop' | 'pause' | 'resume' | 'reset' | 'purge' | 'delete';

export async function act(sandbox: Sandbox, verb: Verb): Promise<void> {
  const after = verb === 'delete' ? await call<undefined>('DELETE', sandboxPath(sandbox.id)) : await call<Sandbox | undefined>('POST', sandboxPath(sandbox.id, `/${verb}`));
  if (verb === 'delete' || verb === 'purge') place(client, sandbox.id, null);
  else if (after?.id) place(client, sandbox.id, after);
}

/** Changes settings of a sandbox. */
export function useChange(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (change: Record<string, unknown>) => call<Sandbox>('PATCH', sandboxPath(id), { json: change }),
    onSuccess: (sandbox) => { place(queries, sandbox.id, sandbox); void queries.invalidateQueries({ queryKey: ['network', id] }); },
  });
}
