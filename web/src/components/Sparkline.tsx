// SPDX-License-Identifier: Apache-2.0
// A line of the last values above 0. Small ones are seen too, but not noise: the whole height is a seventh of `top` at least.
const tenth = (value: number) => Math.round(value * 10) / 10;

export function Sparkline({ values, top, label, width = 72, height = 24 }: { values: number[]; top: number; label: string; width?: number; height?: number }) {
  const most = Math.max(top / 7, ...values.map((value) => value * 1.15), 1e-9);
  const step = width / Math.max(values.length - 1, 1);
  const line = values.map((value, i) => `${i ? 'L' : 'M'}${tenth(i * step)} ${tenth(height - 1 - (value / most) * (height - 3))}`).join('');
  return (
    <svg className="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {values.length > 1 ? <><path className="area" d={`${line}L${width} ${height}L0 ${height}Z`} /><path d={line} /></> : <path d={`M0 ${height - 1}L${width} ${height - 1}`} opacity=".35" strokeDasharray="2 3" />}
    </svg>
  );
}
