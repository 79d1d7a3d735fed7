// SPDX-License-Identifier: Apache-2.0
// Requests to the API. The session's cookie goes with each; what goes wrong is an ApiError that says what the server said.
import { sentence } from '../lib/format';
import type { Error as ErrorBody } from './schema';

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly remediation: string | null, readonly requestId: string | null, readonly retryable = false) {
    super(message);
  }
}

/** The server cannot be reached: it restarts, or the network is gone. */
export const isUnreachable = (error: unknown) => error instanceof ApiError && error.status === 0;

export interface Options {
  query?: Record<string, string | number | boolean | null | undefined>;
  json?: unknown;
  body?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

let onSignedOut = () => {};
/** What to do when an answer says that nobody is signed in. */
export const whenSignedOut = (act: () => void) => { onSignedOut = act; };

export function address(path: string, query: Options['query'] = {}): string {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '').map(([key, value]) => [key, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** A remedy that names a request is for programs: here there are buttons. */
const forPeople = (remedy: string | null) => (remedy && !remedy.includes(' /v1/') ? sentence(remedy) : null);

/** An error's answer as what it says. */
export async function readError(answer: Response): Promise<ApiError> {
  const body = await answer.json().catch(() => null) as ErrorBody | null;
  if (answer.status === 401) onSignedOut();
  if (!body?.error) return new ApiError(answer.status, `http_${answer.status}`, `${answer.status} ${answer.statusText}`, null, answer.headers.get('x-request-id'));
  const { code, message, remediation, request_id, retryable } = body.error;
  return new ApiError(answer.status, code, sentence(message), forPeople(remediation), request_id, retryable);
}

/** The answer itself, if it is one of success. */
export async function request(method: string, path: string, { query, json, body, headers, signal }: Options = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(address(path, query), {
      method, signal, credentials: 'same-origin', body: json === undefined ? body : JSON.stringify(json),
      headers: json === undefined ? headers : { 'content-type': 'application/json', ...headers },
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'unreachable', 'The server cannot be reached', null, null, true);
  }
  if (!answer.ok) throw await readError(answer);
  return answer;
}

/** The JSON of an answer; undefined where there is none. */
export async function call<T = void>(method: string, path: string, options?: Options): Promise<T> {
  const answer = await request(method, path, options);
  const text = await answer.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

/** All pages of a list, one after the other. */
export async function listAll<T>(path: string, key: string, query: Options['query'] = {}, signal?: AbortSignal): Promise<T[]> {
  const all: T[] = [];
  for (let cursor: string | null = null; ;) {
    const page: Record<string, unknown> = await call('GET', path, { query: { ...query, limit: 1000, cursor }, signal });
    all.push(...(page[key] as T[]));
    cursor = (page.next_cursor as string | null) ?? null;
    if (!cursor) return all;
  }
}

/** One segment of a path. */
export const part = (text: string | number) => encodeURIComponent(String(text));
