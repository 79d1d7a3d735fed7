// SPDX-License-Identifier: Apache-2.0
// What an app was found to be made of, and what is started of it.
import type { Launch } from '../../api/schema';
import { Badge } from '../../components/Basics';
import { text } from '../../text/en';

const plain = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Launches of earlier versions have no `overrides`. */
export function Parts({ detection }: { detection: NonNullable<Launch['detection']> }) {
  const { runtimes, parts, services } = detection;
  return (
    <div className="stack">
      <div className="row wrap">
        {runtimes.map((one) => <Badge key={`${one.name} ${one.directory}`} tone="info" title={one.evidence.map(({ file, why }) => `${file}: ${why}`).join('\n')}>{[one.name, one.version, one.package_manager].filter(Boolean).join(' · ')}</Badge>)}
        {services.map((one) => <Badge key={one.name} tone="warn">{text.launches.needs(one.name)}</Badge>)}
        {runtimes.length === 0 && <span className="muted">{text.launches.unknown}</span>}
      </div>
      {parts.map((part) => (
        <div key={part.role} className="stack tight">
          <div className="row wrap"><strong>{text.launches.roles[part.role]}</strong><span className="muted">{part.framework}</span>{part.directory && <code className="muted break">{part.directory}</code>}<Badge>{text.launches.port(part.port)}</Badge></div>
          {part.command && <code className="break muted">{part.command}</code>}
        </div>
      ))}
      {(detection.overrides ?? []).map((one) => <p key={`${one.source} ${one.what}`} className="small muted break">{text.launches.override(one.what, plain(one.said), plain(one.found), one.source)}</p>)}
    </div>
  );
}
