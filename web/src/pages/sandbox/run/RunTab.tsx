// SPDX-License-Identifier: Apache-2.0
import type { Sandbox } from '../../../api/schema';
import { text } from '../../../text/en';
import { NeedsRunning } from '../NeedsRunning';
import { Runner } from './Runner';

export default function RunTab({ sandbox }: { sandbox: Sandbox }) {
  return <NeedsRunning sandbox={sandbox} what={text.needs.run}><Runner sandbox={sandbox} /></NeedsRunning>;
}
