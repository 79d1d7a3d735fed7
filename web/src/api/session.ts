// SPDX-License-Identifier: Apache-2.0
// Who is signed in. The cookie itself is out of reach of scripts; the server says whose it is.
import { store } from '../lib/store';
import { ApiError, call, whenSignedOut } from './client';
import type { Identity } from './schema';

export type Session = { state: 'unknown' } | { state: 'out' } | { state: 'in'; identity: Identity } | { state: 'unreachable' };

export const session = store<Session>({ state: 'unknown' });

whenSignedOut(() => session.set({ state: 'out' }));

/** Asks the server; it is asked again by whoever sees that it cannot be reached. */
export async function lookUp(): Promise<void> {
  try {
    session.set({ state: 'in', identity: await call<Identity>('GET', '/v1/login') });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) session.set({ state: 'out' });
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
  return now.state === 'in' && ((now.identity.scopes as string[]).includes(scope) || now.identity.scopes.includes('admin'));
}
