import { DAY, day, monthTick } from './time';

/** Layout of a lifeline: the past, present and expected future of a subscription on one axis. */

export type Segment = {
  from: string;
  to: string | null;
  status: string;
  is_active: boolean;
  future: boolean;
};
export type LifelinePayment = { id: string; at: string; amount: number; status: string };

export type Bar = { segment: Segment; x: number; width: number; label: string | null };
export type Marker = { x: number; label: string; lane: number; anchor: 'start' | 'end' };
export type Dot = { payment: LifelinePayment; x: number; label: string | null; labelX: number };
export type Tick = { x: number; label: string };
export type Layout = {
  bars: Bar[];
  markers: Marker[];
  lanes: number;
  dots: Dot[];
  ticks: Tick[];
  now: number;
};

/** Average width of a character of a label, in pixels at 12 px. */
const CHARACTER = 6.6;
const GAP = 10;
/** Least width of a month, unless all of a history is shown. */
const MONTH_WIDTH = 62;
/** Largest part of the width that is kept free for the label of the last marker. */
const MAX_RESERVE = 0.3;

const EFFECT: Record<string, string> = {
  active: 'becomes active',
  on_trial: 'trial starts',
  past_due: 'past due',
  unpaid: 'access ends',
  paused: 'pauses',
  pending: 'pending',
  cancelled: 'cancelled',
  expired: 'expires',
};

/** Returns what happens when a forecast segment starts, in few words. */
export function effect(segment: Segment, before: Segment | undefined): string {
  if (segment.status === 'expired' && before?.is_active) return 'access ends';
  return EFFECT[segment.status] ?? segment.status;
}

/**
 * Returns the shown span of time. A month needs some pixels, so that a long history starts later, unless
 * all of it is asked for.
 */
export function rangeOf(
  segments: Segment[],
  now: number,
  width: number,
  showAll: boolean,
): [number, number] {
  const bounds = segments.flatMap(({ from, to }) => [from, ...(to ? [to] : [])]).map(Date.parse);
  const start = Math.min(now, ...bounds);
  const last = Math.max(now, ...bounds);
  const end = last + Math.max(7 * DAY, (last - now) * 0.1);
  const room = Math.max(3, Math.floor(width / MONTH_WIDTH)) * 30.5 * DAY - (end - now);
  const from = showAll ? start : Math.max(start, now - Math.max(room, 60 * DAY));
  return [from === start ? from - (end - from) * 0.02 : from, end];
}

/** Places labels from left to right, each in the first lane where it overlaps no other. */
export function placeMarkers(points: { x: number; label: string }[], width: number): Marker[] {
  const ends: number[] = [];
  return points.map(({ x, label }) => {
    const size = label.length * CHARACTER + GAP;
    const anchor = x + size > width ? 'end' : 'start';
    const [left, right] = anchor === 'start' ? [x, x + size] : [x - size, x];
    let lane = ends.findIndex((end) => end <= left);
    if (lane < 0) lane = ends.length;
    ends[lane] = right;
    return { x, label, lane, anchor };
  });
}

/** Chooses which payments have a label: those that are not completed, then the latest, without overlaps. */
export function labelDots(
  dots: { payment: LifelinePayment; x: number; label: string }[],
  width: number,
): Dot[] {
  const taken: [number, number][] = [];
  const order = dots.toSorted(
    (a, b) =>
      Number(a.payment.status === 'completed') - Number(b.payment.status === 'completed') ||
      b.x - a.x,
  );
  const labeled = new Map<string, number>();
  for (const { payment, x, label } of order) {
    const half = (label.length * CHARACTER) / 2 + 3;
    const labelX = Math.min(Math.max(x, half), width - half);
    const isFree = taken.every(([from, to]) => labelX + half < from || labelX - half > to);
    if (!isFree) continue;
    taken.push([labelX - half, labelX + half]);
    labeled.set(payment.id, labelX);
  }
  return dots.map(({ payment, x, label }) => {
    const labelX = labeled.get(payment.id);
    return { payment, x, label: labelX === undefined ? null : label, labelX: labelX ?? x };
  });
}

function ticksOf(from: number, to: number, scale: (at: number) => number, width: number): Tick[] {
  const start = new Date(from);
  const all: Tick[] = [];
  for (let index = 1; ; index += 1) {
    const at = Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + index, 1);
    if (at > to) break;
    all.push({ x: scale(at), label: monthTick(at) });
  }
  const every = Math.max(1, Math.ceil((all.length * 52) / width));
  return all.filter((tick, index) => index % every === 0 && tick.x < width - 34);
}

type Input = {
  segments: Segment[];
  payments: LifelinePayment[];
  now: number;
  width: number;
  showAll: boolean;
  word: (status: string) => string;
  paymentLabel: (payment: LifelinePayment) => string;
};

/** Lays out a lifeline in pixels. */
export function layOut(input: Input): Layout {
  const { segments, payments, now, width, showAll, word, paymentLabel } = input;
  const points = segments
    .map((segment, index) => ({ segment, before: segments[index - 1] }))
    .filter(({ segment }) => segment.future)
    .map(({ segment, before }) => ({
      at: Date.parse(segment.from),
      label: `${effect(segment, before)} ${day(segment.from, now)}`,
    }));
  const lastLabel = points.at(-1)?.label.length ?? 0;
  const axis = width - Math.min(lastLabel * CHARACTER, width * MAX_RESERVE);
  const [from, to] = rangeOf(segments, now, axis, showAll);
  const scale = (at: number) => ((at - from) / (to - from)) * axis;
  const clamp = (at: number) => Math.min(Math.max(scale(at), 0), width);
  const bars = segments
    .map((segment) => {
      const x = clamp(Date.parse(segment.from));
      const end = segment.to ? clamp(Date.parse(segment.to)) : width;
      const label = word(segment.status);
      const size = end - x;
      return {
        segment,
        x,
        width: size,
        label: label.length * CHARACTER + 16 < size ? label : null,
      };
    })
    .filter((bar) => bar.width > 0.5);
  const markers = placeMarkers(
    points.map(({ at, label }) => ({ x: clamp(at), label })),
    width,
  );
  const dots = payments
    .filter(({ at }) => Date.parse(at) >= from && Date.parse(at) <= to)
    .map((payment) => ({
      payment,
      x: scale(Date.parse(payment.at)),
      label: paymentLabel(payment),
    }));
  return {
    bars,
    markers,
    lanes: Math.max(0, ...markers.map(({ lane }) => lane + 1)),
    dots: labelDots(dots, width),
    ticks: ticksOf(from, to + ((to - from) * (width - axis)) / axis, scale, width),
    now: clamp(now),
  };
}
