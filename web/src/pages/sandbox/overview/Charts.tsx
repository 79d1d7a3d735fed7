// SPDX-License-Identifier: Apache-2.0
// Figures over time with the lines of their limits. They begin with what the server remembers.
import { useEffect, useMemo, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

import { colour, theme } from '../../../app/theme';
import { useHistory, WINDOW_MS, type Point, type Window } from '../../../api/history';
import type { Sample } from '../../../api/samples';
import type { Sandbox } from '../../../api/schema';
import { Card } from '../../../components/Basics';
import { Segments } from '../../../components/Field';
import { bytes, clock } from '../../../lib/format';
import { remember, remembered, useStore } from '../../../lib/store';
import { text } from '../../../text/en';

const WINDOWS: Window[] = ['now', 'hour', 'day'];
/** How far apart lines of a chart may be, so that what stands beside them is round: of percent, and of bytes. */
const STEPS_OF_PERCENT = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000];
const STEPS_OF_BYTES = Array.from({ length: 50 }, (_, i) => 2 ** i);

/** The time of each point in seconds; that of a gap is next to the point before. */
const timesOf = (points: (Point | null)[]) => points.map((point, i) => (point ? Date.parse(point.at) / 1000 : Date.parse(points[i - 1]!.at) / 1000 + 0.001));

export default function Charts({ sandbox, samples, memoryLimit, diskLimit }: { sandbox: Sandbox; samples: Sample[]; memoryLimit?: number; diskLimit?: number }) {
  const [window, setWindow] = useState<Window>(() => remembered<Window>('window', 'now'));
  const points = useHistory(sandbox.id, window, samples);
  const times = useMemo(() => timesOf(points), [points]);
  const of = (value: (point: Point) => number) => points.map((point) => (point ? value(point) : null));
  const choose = (next: string) => { remember('window', next); setWindow(next as Window); };
  return (
    <div className="stack">
      <div><Segments label={text.stats.window} value={window} onText={choose} choices={WINDOWS.map((one) => ({ value: one, label: text.stats.windows[one] }))} /></div>
      <div className="charts">
        <Chart key={window} span_s={WINDOW_MS[window] / 1000} title={text.stats.cpuPercent} times={times} lines={[{ name: text.stats.cpu, colour: '--info', values: of((point) => point.cpu * 100) }]} limit={(sandbox.resources.cpu ?? 1) * 100} steps={STEPS_OF_PERCENT} format={(value) => `${Math.round(value)} %`} />
        <Chart key={window} span_s={WINDOW_MS[window] / 1000} title={text.stats.memory} times={times} lines={[{ name: text.stats.memory, colour: '--violet', values: of((point) => point.memory_bytes) }]} limit={memoryLimit} format={bytes} />
        <Chart key={window} span_s={WINDOW_MS[window] / 1000} title={text.stats.disk} times={times} lines={[{ name: text.stats.disk, colour: '--accent', values: of((point) => point.disk_bytes) }]} limit={diskLimit} format={bytes} />
        <Chart key={window} span_s={WINDOW_MS[window] / 1000} title={text.stats.networkRate} times={times} lines={[{ name: text.stats.received, colour: '--ok', values: of((point) => point.rx_bytes_per_second) }, { name: text.stats.sent, colour: '--warn', values: of((point) => point.tx_bytes_per_second) }]} format={(value) => `${bytes(value)}/s`} />
      </div>
    </div>
  );
}

interface Line { name: string; colour: string; values: (number | null)[] }
interface ChartProps { title: string; times: number[]; span_s: number; lines: Line[]; limit?: number; steps?: number[]; format: (value: number) => string }

/** One chart. It is drawn anew when theme or width change, and takes new values else. */
function Chart({ title, times, span_s, lines, limit, steps = STEPS_OF_BYTES, format }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const shown = useStore(theme);
  const data = [times, ...lines.map((line) => line.values)] as uPlot.AlignedData;
  const now = lines.map((line) => line.values.at(-1)).filter((value) => value !== undefined && value !== null);

  useEffect(() => {
    const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' };
    const most = (max: number) => (limit && max > limit * 0.25 ? limit * 1.08 : Math.max(max * 1.25, limit ? limit * 0.02 : 1024));
    const made = new uPlot({
      width: box.current!.clientWidth, height: 160, padding: [8, 16, 0, 0],
      cursor: { y: false }, legend: { show: false },
      // The whole time is shown, also while little of it is known: a line that is two points long would tell of nothing.
      scales: { x: { range: (_, __, max) => { const end = Math.max(max ?? 0, Date.now() / 1000); return [end - span_s, end]; } }, y: { range: (_, __, max) => [0, most(max ?? 1)] } },
      axes: [{ ...axis, size: 26, values: (_, marks) => marks.map((mark) => clock(mark * 1000).slice(0, 5)), space: 70 }, { ...axis, size: 66, values: (_, marks) => marks.map(format), incrs: steps, space: 26 }],
      series: [{}, ...lines.map((line) => ({ stroke: colour(line.colour), width: 1.6, fill: `color-mix(in srgb, ${colour(line.colour)} 14%, transparent)`, points: { show: false } }))],
      hooks: { draw: [(self) => drawLimit(self, limit, format)] },
    }, data, box.current!);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: box.current?.clientWidth ?? 300, height: 160 }));
    observer.observe(box.current!);
    return () => { observer.disconnect(); made.destroy(); };
  }, [shown, limit]);
  useEffect(() => { plot.current?.setData(data); }, [times]);

  return (
    <Card title={title} actions={<span className="row small number">{lines.map((line, i) => <span key={line.name} className="row" style={{ gap: 5 }}><span className="dot" style={{ background: `var(${line.colour})` }} aria-hidden />{lines.length > 1 && <span className="muted">{line.name}</span>}{now[i] === undefined ? '–' : format(now[i])}</span>)}</span>}>
      <div className="chart" ref={box} role="img" aria-label={text.stats.chart(title, now[0] === undefined ? '–' : format(now[0]), limit ? format(limit) : '')} />
    </Card>
  );
}

/** A line at the limit, or along the upper edge while all values are far below it; it says which limit it is. */
function drawLimit(plot: uPlot, limit: number | undefined, format: ChartProps['format']) {
  if (!limit) return;
  const { ctx, bbox } = plot;
  const isAbove = (plot.scales.y.max ?? 0) < limit;
  const y = isAbove ? bbox.top + 1 : plot.valToPos(limit, 'y', true);
  const scale = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour('--bad');
  ctx.globalAlpha = isAbove ? 0.6 : 1;
  ctx.setLineDash([5 * scale, 4 * scale]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.globalAlpha = 1;
  ctx.font = `${11 * scale}px system-ui`;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'top';
  ctx.fillText(`${isAbove ? '↑ ' : ''}${format(limit)}`, bbox.left + bbox.width - 4 * scale, y + 3 * scale);
  ctx.restore();
}
