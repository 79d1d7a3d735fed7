// SPDX-License-Identifier: Apache-2.0
// The worker that the tabs of a browser share: it holds their stream of events.
import { eventHub, type Member, type Wish } from './hub';

const hub = eventHub();

addEventListener('connect', (event) => {
  const [port] = (event as MessageEvent).ports;
  const member: Member = (word) => port.postMessage(word);
  port.onmessage = ({ data }: MessageEvent<Wish>) => {
    if (data.kind === 'join') hub.join(member, data.who, data.wantsStats);
    else hub.leave(member);
  };
});
