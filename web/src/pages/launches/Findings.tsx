// SPDX-License-Identifier: Apache-2.0
// What rules found in an app, the worst first, with how the copy that is started differs.
import type { Validation } from '../../api/schema';
import { Badge, type Tone } from '../../components/Basics';
import { text } from '../../text/en';

type Finding = Validation['findings'][number];
const TONES: Record<Finding['severity'], Tone> = { error: 'bad', warning: 'warn', info: 'info' };
const ORDER = Object.keys(TONES);

export function Findings({ findings }: { findings: Finding[] }) {
  const list = [...findings].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  return (
    <ul className="stack">
      {list.map((finding, i) => (
        <li key={i} className="stack tight">
          <div className="row wrap"><Badge tone={TONES[finding.severity]}>{text.launches.severities[finding.severity]}</Badge><code>{finding.rule}</code>{finding.file && <code className="muted break">{finding.file}{finding.line ? `:${finding.line}` : ''}</code>}</div>
          <p className="break">{finding.message}</p>
          {finding.fix && <p className="small muted break">{text.launches.fix(finding.fix)}</p>}
          {finding.diff && <details><summary className="small muted">{text.launches.diff}</summary><pre className="output" tabIndex={0}>{finding.diff}</pre></details>}
        </li>
      ))}
    </ul>
  );
}
