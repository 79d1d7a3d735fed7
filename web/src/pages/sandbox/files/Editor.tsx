// SPDX-License-Identifier: Apache-2.0
// CodeMirror with the colours of the language that a file's name tells. Languages are fetched when one is needed.
import { autocompletion, closeBrackets, closeBracketsKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, indentUnit, StreamLanguage, syntaxHighlighting, type LanguageSupport } from '@codemirror/language';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'react';

import { text } from '../../../text/en';
import { extensionOf } from './paths';

type Load = () => Promise<Extension>;
const js = (options: { jsx?: boolean; typescript?: boolean }): Load => async () => (await import('@codemirror/lang-javascript')).javascript(options);
const shell: Load = async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/shell')).shell);
const cpp: Load = async () => (await import('@codemirror/lang-cpp')).cpp();
const LANGUAGES: Record<string, Load> = {
  js: js({}), mjs: js({}), cjs: js({}), jsx: js({ jsx: true }), ts: js({ typescript: true }), tsx: js({ jsx: true, typescript: true }), javascript: js({}),
  py: async () => (await import('@codemirror/lang-python')).python(), python: async () => (await import('@codemirror/lang-python')).python(),
  json: async () => (await import('@codemirror/lang-json')).json(), ipynb: async () => (await import('@codemirror/lang-json')).json(),
  md: async () => (await import('@codemirror/lang-markdown')).markdown(), html: async () => (await import('@codemirror/lang-html')).html(), htm: async () => (await import('@codemirror/lang-html')).html(),
  css: async () => (await import('@codemirror/lang-css')).css(), sql: async () => (await import('@codemirror/lang-sql')).sql(),
  yaml: async () => (await import('@codemirror/lang-yaml')).yaml(), yml: async () => (await import('@codemirror/lang-yaml')).yaml(),
  rs: async () => (await import('@codemirror/lang-rust')).rust(), go: async () => (await import('@codemirror/lang-go')).go(),
  c: cpp, h: cpp, cc: cpp, cpp, hpp: cpp, sh: shell, bash: shell, shell, zsh: shell,
  dockerfile: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/dockerfile')).dockerFile),
  toml: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/toml')).toml),
};

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: 'var(--violet)' },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--warn)' },
  { tag: [tags.comment, tags.meta], color: 'var(--muted)', fontStyle: 'italic' },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.labelName, tags.heading], color: 'var(--info)' },
  { tag: [tags.typeName, tags.className, tags.tagName, tags.namespace], color: 'var(--link)' },
  { tag: [tags.propertyName, tags.attributeName], color: 'var(--info)' },
  { tag: tags.invalid, color: 'var(--bad)' },
  { tag: tags.heading, fontWeight: '700' }, { tag: tags.strong, fontWeight: '700' }, { tag: tags.emphasis, fontStyle: 'italic' }, { tag: tags.link, textDecoration: 'underline' },
]);

const LOOK = EditorView.theme({
  '&': { backgroundColor: 'var(--sunken)', color: 'var(--text)', height: '100%' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--muted)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--hover) 60%, transparent)' },
  '.cm-cursor': { borderLeftColor: 'var(--accent)', borderLeftWidth: '2px' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground, .cm-content ::selection': { backgroundColor: 'color-mix(in srgb, var(--accent) 28%, transparent) !important' },
  '.cm-panels': { backgroundColor: 'var(--surface)', color: 'var(--text)', borderColor: 'var(--line)' },
  '.cm-searchMatch': { backgroundColor: 'color-mix(in srgb, var(--accent) 35%, transparent)' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', border: '1px solid var(--line-strong)' },
});

interface Props { value: string; name: string; onChange: (value: string) => void; onSave?: () => void; saveKey?: string }

/** `value` is what it begins with; later changes of it are taken when `name` changes or the editor is made anew. */
export default function Editor({ value, name, onChange, onSave, saveKey = 'Mod-s' }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const acts = useRef({ onChange, onSave });
  acts.current = { onChange, onSave };

  useEffect(() => {
    const language = new Compartment();
    const view = new EditorView({
      parent: box.current!,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(), highlightActiveLine(), highlightActiveLineGutter(), history(), foldGutter(), drawSelection(), indentOnInput(), indentUnit.of('    '), bracketMatching(), closeBrackets(), autocompletion({ activateOnTyping: false }), highlightSelectionMatches(),
          keymap.of([{ key: saveKey, preventDefault: true, run: () => { acts.current.onSave?.(); return true; } }, ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, indentWithTab]),
          syntaxHighlighting(COLOURS), LOOK, language.of([]),
          EditorView.contentAttributes.of({ 'aria-label': text.files.editor(name), tabindex: '0' }),
          EditorView.updateListener.of((update) => { if (update.docChanged) acts.current.onChange(update.state.doc.toString()); }),
        ],
      }),
    });
    const load = LANGUAGES[extensionOf(name) || name.toLowerCase()];
    let isGone = false;
    void load?.().then((extension: Extension | LanguageSupport) => { if (!isGone) view.dispatch({ effects: language.reconfigure(extension) }); });
    return () => { isGone = true; view.destroy(); };
  }, [name, value]);
  return <div ref={box} style={{ display: 'contents' }} />;
}
