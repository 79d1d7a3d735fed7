// SPDX-License-Identifier: Apache-2.0
// What a sandbox may reach, what it reached, and what was refused, with the rule that would allow it one click away.
import { GraduationCap, ShieldCheck } from 'lucide-react';
import { useState } from 'react';

import { useChange, useNetwork } from '../../../api/queries';
import type { Network, Sandbox } from '../../../api/schema';
import { Ago, Badge, Card, Empty, Loaded, TableWrap } from '../../../components/Basics';
import { Button } from '../../../components/Button';
import { AreaField, Check, SelectField } from '../../../components/Field';
import { complain, say } from '../../../components/Toasts';
import { bytes } from '../../../lib/format';
import { lines } from '../../../lib/parse';
import { text } from '../../../text/en';

/** What was refused, or could not be looked up. */
type Failure = Omit<Network['denials'][number], 'reason'> & { reason: string };

export default function NetworkTab({ sandbox }: { sandbox: Sandbox }) {
  const query = useNetwork(sandbox.id);
  return (
    <Loaded query={query}>
      {(network) => (
        <div className="stack wide">
          <Traffic network={network} />
          <div className="grid two">
            <Policy key={JSON.stringify(sandbox.network)} sandbox={sandbox} />
            <Learn sandbox={sandbox} network={network} />
          </div>
          <Denials sandbox={sandbox} network={network} />
        </div>
      )}
    </Loaded>
  );
}

function Traffic({ network }: { network: Network }) {
  const figures: [string, string | number, boolean?][] = [[text.stats.received, bytes(network.rx_bytes)], [text.stats.sent, bytes(network.tx_bytes)], [text.network.connections, network.connections], [text.network.open, network.open_connections], [text.network.refused, network.denied, network.denied > 0]];
  return <div className="meters many">{figures.map(([name, value, isBad]) => <div key={name} className="card figure plain"><div className="small muted">{name}</div><div className={isBad ? 'value number warn' : 'value number'}>{value}</div></div>)}</div>;
}

function Policy({ sandbox }: { sandbox: Sandbox }) {
  const change = useChange(sandbox.id);
  const [mode, setMode] = useState<string>(sandbox.network.mode ?? 'internet');
  const [allow, setAllow] = useState((sandbox.network.allow ?? []).join('\n'));
  const isSame = mode === (sandbox.network.mode ?? 'internet') && lines(allow).join('\n') === (sandbox.network.allow ?? []).join('\n');
  const save = () => change.mutate({ network: { ...sandbox.network, mode, allow: lines(allow) } }, { onSuccess: () => say(text.network.saved), onError: (error) => complain(error) });
  return (
    <Card title={text.network.policy} actions={<Button small kind="primary" busy={change.isPending} disabled={isSame} onClick={save}>{text.save}</Button>}>
      <div className="body stack">
        <SelectField label={text.network.mode} value={mode} onText={setMode} choices={(['internet', 'allowlist', 'none'] as const).map((one) => ({ value: one, label: text.networkModes[one] }))} />
        <AreaField label={text.create.allow} value={allow} onText={setAllow} hint={text.create.allowHint} placeholder={'api.example.com\n*.example.org:443'} />
      </div>
    </Card>
  );
}

function Denials({ sandbox, network }: { sandbox: Sandbox; network: Network }) {
  const change = useChange(sandbox.id);
  const allow = (rule: string) => change.mutate({ network: { ...sandbox.network, allow: [...new Set([...(sandbox.network.allow ?? []), rule])] } }, { onSuccess: () => say(text.network.allowed(rule)), onError: (error) => complain(error) });
  const isAllowed = (rule: string) => (sandbox.network.allow ?? []).includes(rule);
  const failures: Failure[] = [...network.denials, ...network.failed_lookups.map(({ name, cause, ...failed }) => ({ ...failed, target: name, reason: cause }))];
  return (
    <Card title={text.network.denials}>
      {failures.length === 0 ? <Empty icon={ShieldCheck} title={text.network.noDenials}><p>{text.network.noDenialsAbout}</p></Empty> : (
        <TableWrap><table className="table">
          <thead><tr><th>{text.network.target}</th><th>{text.network.why}</th><th className="end">{text.network.times}</th><th>{text.network.last}</th><th><span className="sr-only">{text.actions}</span></th></tr></thead>
          <tbody>{failures.map((denial) => (
            <tr key={`${denial.target} ${denial.reason}`}>
              <td className="mono break">{denial.target}</td><td>{text.network.reasons[denial.reason] ?? denial.reason}</td><td className="end number">{denial.count}</td><td><Ago time={denial.at} /></td>
              <td className="actions">{denial.rule && (isAllowed(denial.rule) ? <Badge tone="ok">{text.network.isAllowed}</Badge> : <Button small busy={change.isPending} onClick={() => allow(denial.rule!)}>{text.network.allow(denial.rule)}</Button>)}</td>
            </tr>
          ))}</tbody>
        </table></TableWrap>
      )}
    </Card>
  );
}

/** An allowlist of what was reached: first all is open, then only that. */
function Learn({ sandbox, network }: { sandbox: Sandbox; network: Network }) {
  const change = useChange(sandbox.id);
  const [left, setLeft] = useState<string[]>([]);
  const isLearning = sandbox.network.mode === 'internet';
  const chosen = network.reached.filter((rule) => !left.includes(rule));
  const set = (policy: Partial<Sandbox['network']>, done: string) => change.mutate({ network: { ...sandbox.network, ...policy } }, { onSuccess: () => say(done), onError: (error) => complain(error) });
  const close = () => set({ mode: 'allowlist', allow: [...new Set([...(sandbox.network.allow ?? []), ...chosen])] }, text.network.learned(chosen.length));
  const toggle = (rule: string, isOn: boolean) => setLeft((before) => (isOn ? before.filter((one) => one !== rule) : [...before, rule]));
  const action = isLearning
    ? <Button small kind="primary" icon={ShieldCheck} busy={change.isPending} disabled={chosen.length === 0} onClick={close}>{chosen.length ? text.network.learn(chosen.length) : text.network.learnNone}</Button>
    : <Button small icon={GraduationCap} busy={change.isPending} onClick={() => set({ mode: 'internet' }, text.network.learning)}>{text.network.learnOpen}</Button>;
  return (
    <Card title={text.network.reached} actions={action}>
      <div className="body stack">
        <p className="muted">{isLearning ? text.network.learnAbout : text.network.learnOpenAbout}</p>
        {network.reached.length === 0 ? <p className="muted">{text.network.reachedNone}</p>
          : isLearning ? <div className="rules">{network.reached.map((rule) => <Check key={rule} label={rule} checked={!left.includes(rule)} onCheck={(isOn) => toggle(rule, isOn)} />)}</div>
            : <div className="row wrap">{network.reached.map((rule) => <Badge key={rule}>{rule}</Badge>)}</div>}
      </div>
    </Card>
  );
}
