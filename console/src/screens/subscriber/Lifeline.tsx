import { useState } from 'react';
import type { Schema } from '../../api/client';
import { useNow } from '../../lib/clock';
import { layOut, rangeOf, type LifelinePayment, type Segment } from '../../lib/lifeline';
import { amount, money } from '../../lib/money';
import { day } from '../../lib/time';
import { useWidth } from '../../lib/width';
import { PAYMENT_STATUS, SUBSCRIPTION_STATUS, type PaymentStatus } from '../../ui/Status';
import './lifeline.css';

const LANE = 20;
const BAR = 40;
const THIN = 12;
const BOTTOM = 78;

type Props = { timeline: Schema<'SubscriptionTimeline'> };

const look = (status: string) => SUBSCRIPTION_STATUS[status as keyof typeof SUBSCRIPTION_STATUS];

/** The past, present and expected future of a subscription, with its payments. */
export function Lifeline({ timeline }: Props) {
  const { segments, id } = timeline;
  const payments = timeline.payments ?? [];
  const now = useNow();
  const [showAll, setShowAll] = useState(false);
  const { ref, width } = useWidth();
  const currency = payments[0]?.currency ?? 'USD';
  const paymentLabel = (payment: LifelinePayment) =>
    payment.status === 'completed'
      ? amount(payment.amount, currency)
      : PAYMENT_STATUS[payment.status as PaymentStatus].word.toLowerCase();
  const layout = layOut({
    segments,
    payments,
    now,
    // Before the first layout, there is no width and nothing is drawn.
    width: width || 1,
    showAll,
    word: (status) => look(status).word,
    paymentLabel,
  });
  const top = (layout.lanes + 1) * LANE + 4;
  const middle = top + BAR / 2;
  const height = top + BAR + BOTTOM;
  const isLong = rangeOf(segments, now, width, false)[0] !== rangeOf(segments, now, width, true)[0];
  const summary = segments
    .map(({ status, from, future }) => {
      const word = look(status).word.toLowerCase();
      return `${future ? 'expected ' : ''}${word} from ${day(from, now)}`;
    })
    .join('; ');

  return (
    <div className="lifeline">
      {isLong && (
        <button type="button" className="text-button" onClick={() => setShowAll(!showAll)}>
          {showAll ? 'Show less of the past' : 'Show from the start'}
        </button>
      )}
      <div ref={ref} style={{ minHeight: height }}>
        {width > 0 && (
          <svg width={width} height={height} role="img" aria-label={`Lifeline: ${summary}`}>
            <defs>
              {['green', 'blue', 'amber', 'red', 'purple', 'gray'].map((tone) => (
                <pattern
                  key={tone}
                  id={`hatch-${tone}-${id}`}
                  width="7"
                  height="7"
                  patternUnits="userSpaceOnUse"
                  patternTransform="rotate(45)"
                >
                  <rect width="7" height="7" className={`lifeline-${tone}`} />
                  <line x1="0" x2="0" y1="0" y2="7" className={`lifeline-hatch stroke-${tone}`} />
                </pattern>
              ))}
            </defs>
            {layout.ticks.map((tick) => (
              <g key={tick.x}>
                <line className="chart-grid" x1={tick.x} x2={tick.x} y1={top} y2={height - 4} />
                <text className="lifeline-text" x={tick.x + 5} y={height - 6}>
                  {tick.label}
                </text>
              </g>
            ))}
            {layout.bars.map(({ segment, x, width: size, label }) => {
              const { tone } = look(segment.status);
              const tall = segment.is_active ? BAR : THIN;
              return (
                <g key={segment.from} data-tip={tipOf(segment, now)}>
                  <rect
                    className={segment.future ? '' : `lifeline-${tone}`}
                    fill={segment.future ? `url(#hatch-${tone}-${id})` : undefined}
                    x={x}
                    width={Math.max(size - 1.5, 1)}
                    y={middle - tall / 2}
                    height={tall}
                    rx={3}
                  />
                  {label && (
                    <text
                      className={`lifeline-word text-${tone}`}
                      x={x + 9}
                      y={segment.is_active ? middle : middle + THIN / 2 + 13}
                      dy={segment.is_active ? '0.35em' : 0}
                    >
                      {label}
                    </text>
                  )}
                </g>
              );
            })}
            {layout.markers.map((marker) => (
              <g key={marker.label}>
                <line
                  className="lifeline-next"
                  x1={marker.x}
                  x2={marker.x}
                  y1={(marker.lane + 1) * LANE + 4}
                  y2={top + BAR + 4}
                />
                <text
                  className="lifeline-text"
                  x={marker.x + (marker.anchor === 'start' ? 5 : -5)}
                  y={(marker.lane + 1) * LANE + 14}
                  textAnchor={marker.anchor}
                >
                  {marker.label}
                </text>
              </g>
            ))}
            <line
              className="lifeline-now"
              x1={layout.now}
              x2={layout.now}
              y1={18}
              y2={top + BAR + 6}
            />
            <text className="lifeline-now-text" x={layout.now} y={13} textAnchor="middle">
              now
            </text>
            {layout.dots.map(({ payment, x, label, labelX }) => {
              const { tone, glyph, word } = PAYMENT_STATUS[payment.status as PaymentStatus];
              const y = top + BAR + 22;
              return (
                <g
                  key={payment.id}
                  className={`text-${tone}`}
                  data-tip={`${money(payment.amount, currency)}, ${word.toLowerCase()}, ${day(payment.at, now)}`}
                >
                  <circle className={`lifeline-${tone}`} cx={x} cy={y} r={9} />
                  <svg
                    x={x - 6}
                    y={y - 6}
                    width="12"
                    height="12"
                    viewBox="0 0 12 12"
                    className="glyph"
                  >
                    {glyph}
                  </svg>
                  {label && (
                    <text className="lifeline-text" x={labelX} y={y + 24} textAnchor="middle">
                      {label}
                    </text>
                  )}
                </g>
              );
            })}
          </svg>
        )}
      </div>
    </div>
  );
}

function tipOf(segment: Segment, now: number): string {
  const span = segment.to
    ? `${day(segment.from, now)} – ${day(segment.to, now)}`
    : `from ${day(segment.from, now)}`;
  const access = segment.is_active ? 'access' : 'no access';
  return `${look(segment.status).word}, ${span}, ${access}${segment.future ? ', expected' : ''}`;
}
