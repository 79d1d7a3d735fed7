// SPDX-License-Identifier: Apache-2.0
// Questions before what cannot be undone: `if (await ask({...}))`. One stands in the page for all.
import { useState } from 'react';

import { store, useStore } from '../lib/store';
import { text } from '../text/en';
import { Button } from './Button';
import { Dialog } from './Dialog';

interface Question { title: string; about: string; confirm: string; danger?: boolean; /** A word to be typed first. */ word?: string; /** Asks for a text instead; this is what stands there. */ value?: string; label?: string }
type Pending = Question & { answer: (value: string | null) => void };

const pending = store<Pending | null>(null);

const put = (question: Question) => new Promise<string | null>((resolve) => {
  pending.get()?.answer(null);
  pending.set({ ...question, answer: (value) => { pending.set(null); resolve(value); } });
});

export const ask = async (question: Question) => await put(question) !== null;
/** Asks for a text; null if there was none. */
export const askText = (question: Question & { value: string; label: string }) => put(question);

export function Asker() {
  const question = useStore(pending);
  return question ? <Form key={question.title} question={question} /> : null;
}

function Form({ question }: { question: Pending }) {
  const [typed, setTyped] = useState(question.value ?? '');
  const isReady = question.value !== undefined ? typed.trim() !== '' : !question.word || typed === question.word;
  const needsInput = question.word !== undefined || question.value !== undefined;
  const give = () => { if (isReady) question.answer(typed.trim()); };
  return (
    <Dialog
      title={question.title} about={question.about} open onClose={() => question.answer(null)}
      footer={<>
        <Button onClick={() => question.answer(null)} autoFocus={!needsInput}>{text.cancel}</Button>
        <Button kind={question.danger ? 'danger' : 'primary'} disabled={!isReady} onClick={give}>{question.confirm}</Button>
      </>}
    >
      {needsInput && (
        <form className="field" onSubmit={(event) => { event.preventDefault(); give(); }}>
          <label htmlFor="asked">{question.label ?? text.typeToConfirm(question.word!)}</label>
          <input id="asked" className="input mono" value={typed} onChange={(event) => setTyped(event.target.value)} autoFocus autoComplete="off" spellCheck={false} />
        </form>
      )}
    </Dialog>
  );
}
