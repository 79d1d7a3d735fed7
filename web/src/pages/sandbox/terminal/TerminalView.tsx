// SPDX-License-Identifier: Apache-2.0
// One terminal: bytes both ways over a WebSocket (pty.v1). A cut connection is made again, and goes on at the byte
// where it was; the process lives on meanwhile.
import { FitAddon } from '@xterm/addon-fit';
import { WebLinksAddon } from '@xterm/addon-web-links';
import { Terminal, type ITheme } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { useEffect, useRef, useState } from 'react';

import { address } from '../../../api/client';
import { sandboxPath } from '../../../api/queries';
import { colour, theme } from '../../../app/theme';
import { useStore } from '../../../lib/store';
import { Badge } from '../../../components/Basics';
import { text } from '../../../text/en';

interface Props { sandbox: string; process: string | null; isShown: boolean; onStart: (process: string) => void }
type State = 'connecting' | 'live' | 'lost' | 'over';

function colours(): ITheme {
  return { background: colour('--sunken'), foreground: colour('--text'), cursor: colour('--accent'), cursorAccent: colour('--sunken'), selectionBackground: `${colour('--accent')}55` };
}

export default function TerminalView({ sandbox, process, isShown, onStart }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const made = useRef<{ terminal: Terminal; fit: FitAddon }>(undefined);
  const [state, setState] = useState<State>('connecting');
  const shownTheme = useStore(theme);
  const first = useRef(process);

  useEffect(() => {
    const terminal = new Terminal({ fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'), fontSize: 13, lineHeight: 1.15, cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches, scrollback: 10_000, minimumContrastRatio: 4.5, theme: colours(), screenReaderMode: false });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.loadAddon(new WebLinksAddon((_, uri) => { if (/^https?:/.test(uri)) open(uri, '_blank', 'noopener,noreferrer'); }));
    terminal.open(box.current!);
    fit.fit();
    terminal.focus();
    made.current = { terminal, fit };
    const link = connect({ sandbox, process: first.current, terminal, onStart: (id) => { first.current = id; onStart(id); }, onState: setState });
    const observer = new ResizeObserver(() => { if (box.current?.offsetParent) fit.fit(); });
    observer.observe(box.current!);
    return () => { observer.disconnect(); link.close(); terminal.dispose(); };
  }, [sandbox]);
  useEffect(() => { if (made.current) made.current.terminal.options.theme = colours(); }, [shownTheme]);
  useEffect(() => { if (isShown) { made.current?.fit.fit(); made.current?.terminal.focus(); } }, [isShown]);

  return (
    <div className="terminal-box" style={{ display: isShown ? undefined : 'none' }} data-link={state}>
      <div ref={box} />
      {state !== 'live' && <span className="terminal-note"><Badge tone={state === 'over' ? '' : 'warn'}>{text.terminal.states[state]}</Badge></span>}
    </div>
  );
}

interface Link { sandbox: string; process: string | null; terminal: Terminal; onStart: (process: string) => void; onState: (state: State) => void }

function connect({ sandbox, process, terminal, onStart, onState }: Link) {
  let socket: WebSocket | undefined; // none before the first moment is over, in which the size may change
  let id = process;
  let position: number | null = null; // of the next byte, in all that the process has written
  let isOver = false;
  let pause = 300;
  let timer: ReturnType<typeof setTimeout>;
  const send = (data: string | ArrayBufferView<ArrayBuffer>) => { if (socket?.readyState === WebSocket.OPEN) socket.send(data); };
  const encoder = new TextEncoder();

  const control = (message: { type: string; process?: string; from?: number; modes?: string; to?: number; exit_code?: number; code?: number }) => {
    if (message.type === 'start') {
      id = message.process!;
      position = message.from ?? position ?? 0;
      onStart(id);
      if (message.modes) terminal.write(message.modes); // what was switched on before the output that comes now
      send(JSON.stringify({ type: 'resize', cols: terminal.cols, rows: terminal.rows }));
    } else if (message.type === 'cut') {
      position = message.to ?? position;
    } else if (message.type === 'exit') {
      isOver = true;
      onState('over');
      terminal.write(`\r\n\x1b[2m${text.terminal.ended(message.exit_code ?? message.code ?? null)}\x1b[0m\r\n`);
    }
  };
  const dial = () => {
    onState('connecting');
    const path = address(sandboxPath(sandbox, '/terminal'), { cols: terminal.cols, rows: terminal.rows, process: id, from: id && position !== null ? position : undefined });
    socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${path}`, ['pty.v1']);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => { pause = 300; onState('live'); };
    socket.onmessage = ({ data }) => {
      if (typeof data === 'string') control(JSON.parse(data));
      else {
        position = (position ?? 0) + data.byteLength;
        terminal.write(new Uint8Array(data));
      }
    };
    socket.onclose = () => {
      if (isOver) return;
      onState('lost');
      timer = setTimeout(dial, pause);
      pause = Math.min(pause * 2, 5000);
    };
  };
  terminal.onData((data) => send(encoder.encode(data)));
  terminal.onBinary((data) => send(Uint8Array.from(data, (letter) => letter.charCodeAt(0))));
  terminal.onResize(({ cols, rows }) => send(JSON.stringify({ type: 'resize', cols, rows })));
  // In the next moment: under StrictMode the first of two mounts is gone by then, and must have started no shell.
  timer = setTimeout(dial, 0);
  return { close: () => { isOver = true; clearTimeout(timer); socket?.close(); } };
}
