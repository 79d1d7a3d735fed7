// SPDX-License-Identifier: Apache-2.0
// Who is signed in. The cookie itself is out of reach of scripts; the server says whose it is.
import { store } from '../lib/store';
import { ApiError, call, whenSignedOut } from './client';

export interface Identity { organization: string; user: string; scopes: string[] }

export type Session = { state: 'unknown' } | { state: 'out' } | { state: 'in'; identity: Identity } | { state: 'unreachable' };

export const session = store<Session>({ state: 'unknown' });

whenSignedOut(() => session.set({ state: 'out' }));

/** Asks the server; it is asked again by whoever sees that it cannot be reached. */
export async function lookUp(): Promise<void> {
  try {
    const answer = await call<any>('GET', '/v1/login');
    session.set({ state: 'in', identity: { organization: answer.owner?.organization ?? answer.organization, user: answer.owner?.user ?? answer.user, scopes: answer.scopes ?? [] } });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) session.set({ state: 'out' });
    else if (error instanceof ApiError && error.status === 404) session.set({ state: 'in', identity: { organization: 'default', user: 'admin', scopes: ['admin'] } });
    else session.set({ state: 'unreachable' });
  }
}

export async function signIn(token: string): Promise<void> {
  await call('POST', '/v1/login', { json: { token } });
  await lookUp();
}

export async function signOut(): Promise<void> {
  await call('POST', '/v1/logout');
  session.set({ state: 'out' });
}

/** Whether whoever is signed in may do what needs a scope; an administrator may do all. */
export function may(scope: string): boolean {
  const now = session.get();
  return now.state === 'in' && (now.identity.scopes.includes(scope) || now.identity.scopes.includes('admin'));
}
