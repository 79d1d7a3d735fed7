// SPDX-License-Identifier: Apache-2.0
// Code for a result, as a small notebook: cells that run one by one, each afresh or all in a context that keeps what was
// defined before. Cells stay in this browser.
import { Plus } from 'lucide-react';
import { useState } from 'react';

import type { Sandbox } from '../../../api/schema';
import { Button } from '../../../components/Button';
import { Segments } from '../../../components/Field';
import { remember, remembered } from '../../../lib/store';
import { text } from '../../../text/en';
import { NeedsRunning } from '../NeedsRunning';
import { Cell, type Language } from './Cell';
import { Contexts } from './Contexts';

const LANGUAGES: Language[] = ['python', 'javascript', 'shell'];

export default function PlaygroundTab({ sandbox }: { sandbox: Sandbox }) {
  const [language, setLanguage] = useState<Language>(() => remembered<Language>('language', 'python'));
  const choose = (next: string) => { remember('language', next); setLanguage(next as Language); };
  return <NeedsRunning sandbox={sandbox} what={text.needs.playground}><Notebook key={language} sandbox={sandbox} language={language} onLanguage={choose} /></NeedsRunning>;
}

function Notebook({ sandbox, language, onLanguage }: { sandbox: Sandbox; language: Language; onLanguage: (language: string) => void }) {
  const own = `${sandbox.id}.${language}`;
  const [context, setContext] = useState(() => remembered(`context.${own}`, ''));
  const [cells, setCells] = useState<number[]>(() => remembered(`cells.${own}`, [0]));
  const keep = (next: number[]) => { remember(`cells.${own}`, next); setCells(next); };
  const pick = (id: string) => { remember(`context.${own}`, id); setContext(id); };
  return (
    <div className="stack">
      <div className="row wrap">
        <Segments label={text.playground.language} value={language} onText={onLanguage} choices={LANGUAGES.map((one) => ({ value: one, label: text.playground.languages[one] }))} />
        <Contexts sandbox={sandbox} language={language} chosen={context} onChoose={pick} />
        <span className="grow small muted">{context ? text.playground.inContext : text.playground.noneAbout}</span>
      </div>
      {cells.map((cell, i) => (
        <Cell key={cell} sandbox={sandbox} language={language} context={context} number={i + 1} store={cell ? `code.${own}.${cell}` : `code.${own}`} sample={i ? '' : text.playground.samples[language]}
          onDrop={cells.length > 1 ? () => keep(cells.filter((one) => one !== cell)) : undefined} />
      ))}
      <div><Button icon={Plus} onClick={() => keep([...cells, Math.max(0, ...cells) + 1])}>{text.playground.addCell}</Button></div>
    </div>
  );
}
