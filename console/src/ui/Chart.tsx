import { Link } from '@tanstack/react-router';
import { scaleBand, scaleLinear } from 'd3-scale';
import { area, curveMonotoneX, line } from 'd3-shape';
import { useState, type ReactNode } from 'react';
import { useWidth } from '../lib/width';
import './chart.css';

const HEIGHT = 240;
const TOP = 12;
const BOTTOM = 28;

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const plain = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const axisLabel = (value: number) =>
  (Math.abs(value) >= 100_000 ? compact : plain).format(value).replace('-', '−');

export type Point = {
  /** First day of the interval; also its key. */
  from: string;
  /** Label on the axis. */
  tick: string;
  /** The interval in words, for the readout and for screen readers. */
  name: string;
};

type FrameProps<P extends Point> = {
  points: P[];
  label: string;
  domain: [number, number];
  /** Text of the readout for a point. */
  readout: (point: P) => ReactNode;
  /** The same as plain text: the name of the point's link. */
  describe: (point: P) => string;
  link: (point: P) => { to: string; search?: Record<string, string | undefined> };
  draw: (scales: {
    x: (point: P) => number;
    y: (value: number) => number;
    band: number;
  }) => ReactNode;
  legend?: ReactNode;
};

/** Axes, readout and links of a chart over time. Each interval is a link to the rows behind it. */
function Frame<P extends Point>(props: FrameProps<P>) {
  const { points, label, domain, readout, describe, link, draw, legend } = props;
  const { ref, width } = useWidth();
  const [active, setActive] = useState<string | null>(null);
  const shown = points.find((point) => point.from === active) ?? points.at(-1);
  const y = scaleLinear(domain, [HEIGHT - BOTTOM, TOP]).nice(4);
  const ticks = y.ticks(4);
  const left = Math.max(...ticks.map((tick) => axisLabel(tick).length)) * 7.2 + 12;
  const x = scaleBand(
    points.map((point) => point.from),
    [left, Math.max(width, left + 1)],
  )
    .paddingInner(0.3)
    .paddingOuter(0.1);
  const every = Math.max(1, Math.ceil(points.length / Math.max(1, (width - left) / 56)));
  const center = (point: P) => (x(point.from) ?? 0) + x.bandwidth() / 2;
  return (
    <figure className="card chart" aria-label={label}>
      <figcaption className="chart-caption">
        <span className="chart-readout">
          {shown && (
            <>
              <span className="strong">{shown.name}</span> {readout(shown)}
            </>
          )}
        </span>
        {legend}
      </figcaption>
      <div ref={ref} className="chart-plot">
        {width > 0 && (
          <svg width={width} height={HEIGHT} role="group" aria-label={label}>
            {ticks.map((tick) => (
              <g key={tick} aria-hidden="true">
                <line
                  className={tick === 0 ? 'chart-zero' : 'chart-grid'}
                  x1={left}
                  x2={width}
                  y1={Math.round(y(tick)) + 0.5}
                  y2={Math.round(y(tick)) + 0.5}
                />
                <text className="chart-text" x={left - 10} y={y(tick)} dy="0.32em" textAnchor="end">
                  {axisLabel(tick)}
                </text>
              </g>
            ))}
            {shown && active && (
              <rect
                className="chart-active"
                x={(x(shown.from) ?? 0) - (x.step() - x.bandwidth()) / 2}
                width={x.step()}
                y={TOP}
                height={HEIGHT - TOP - BOTTOM}
              />
            )}
            <g aria-hidden="true" className="chart-drawing">
              {draw({
                x: (point) => x(point.from) ?? 0,
                y: (value) => y(value),
                band: x.bandwidth(),
              })}
            </g>
            {points.map((point, index) =>
              (points.length - 1 - index) % every === 0 ? (
                <text
                  key={point.from}
                  className="chart-text"
                  x={center(point)}
                  y={HEIGHT - 8}
                  textAnchor="middle"
                  aria-hidden="true"
                >
                  {point.tick}
                </text>
              ) : null,
            )}
            {points.map((point) => (
              <Link
                key={point.from}
                {...(link(point) as { to: '/' })}
                aria-label={`${point.name}: ${describe(point)}`}
                className="chart-link"
                onMouseEnter={() => setActive(point.from)}
                onMouseLeave={() => setActive(null)}
                onFocus={() => setActive(point.from)}
                onBlur={() => setActive(null)}
              >
                <rect
                  className="chart-hit"
                  x={(x(point.from) ?? 0) - (x.step() - x.bandwidth()) / 2}
                  width={x.step()}
                  y={TOP}
                  height={HEIGHT - TOP}
                />
              </Link>
            ))}
          </svg>
        )}
      </div>
    </figure>
  );
}

type AreaProps<P extends Point> = Omit<FrameProps<P>, 'domain' | 'draw'> & {
  value: (point: P) => number;
  tone?: 'green' | 'red';
};

/** A level over time. */
export function AreaChart<P extends Point>({ value, tone = 'green', ...frame }: AreaProps<P>) {
  const top = Math.max(1, ...frame.points.map(value));
  return (
    <Frame
      {...frame}
      domain={[0, top]}
      draw={({ x, y, band }) => {
        const at = (point: P) => x(point) + band / 2;
        const fill = area<P>(at, y(0), (point) => y(value(point))).curve(curveMonotoneX);
        const stroke = line<P>(at, (point) => y(value(point))).curve(curveMonotoneX);
        const last = frame.points.at(-1);
        return (
          <g className={`chart-level chart-level-${tone}`}>
            <path className="chart-area" d={fill(frame.points) ?? ''} />
            <path className="chart-line" d={stroke(frame.points) ?? ''} />
            {last && <circle className="chart-dot" cx={at(last)} cy={y(value(last))} r={3.5} />}
          </g>
        );
      }}
    />
  );
}

export type Series = { key: string; label: string; tone: string };

type BarsProps<P extends Point> = Omit<FrameProps<P>, 'domain' | 'draw' | 'legend'> & {
  series: Series[];
  value: (point: P, key: string) => number;
};

/** Stacked changes over time: what adds above zero, what takes away below. */
export function StackedBars<P extends Point>({ series, value, ...frame }: BarsProps<P>) {
  const sum = (point: P, sign: 1 | -1) =>
    series.reduce((total, { key }) => total + Math.max(0, sign * value(point, key)), 0) * sign;
  const low = Math.min(0, ...frame.points.map((point) => sum(point, -1)));
  const high = Math.max(1, ...frame.points.map((point) => sum(point, 1)));
  return (
    <Frame
      {...frame}
      domain={[low, high]}
      legend={<Legend series={series} />}
      draw={({ x, y, band }) => {
        const width = Math.min(band, 44);
        return frame.points.map((point) => {
          let [above, below] = [0, 0];
          return (
            <g key={point.from}>
              {series.map(({ key, tone }) => {
                const change = value(point, key);
                if (change === 0) return null;
                const from = change > 0 ? above : below;
                const to = from + change;
                if (change > 0) above = to;
                else below = to;
                const [upper, lower] = [y(Math.max(from, to)), y(Math.min(from, to))];
                return (
                  <rect
                    key={key}
                    className={`fill-${tone}`}
                    x={x(point) + (band - width) / 2}
                    width={width}
                    y={upper}
                    height={Math.max(1, lower - upper - 1)}
                  />
                );
              })}
            </g>
          );
        });
      }}
    />
  );
}

export function Legend({ series }: { series: Series[] }) {
  return (
    <ul className="legend">
      {series.map(({ key, label, tone }) => (
        <li key={key}>
          <svg width="10" height="10" aria-hidden="true">
            <rect className={`fill-${tone}`} width="10" height="10" rx="2" />
          </svg>
          {label}
        </li>
      ))}
    </ul>
  );
}
