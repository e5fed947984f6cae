import { queryOptions, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { DemoDataButton } from '../../actions/DemoDataButton';
import { api, body, type Schema } from '../../api/client';
import { useCan, useSession } from '../../api/session';
import { cliOf } from '../../lib/commands';
import { pluralize } from '../../lib/money';
import { DAY, exact, isoDay } from '../../lib/time';
import { ActionDialog } from '../../ui/ActionDialog';
import { ScopedButton } from '../../ui/Button';
import { Field } from '../../ui/Field';
import { Empty, Failure, Page, Section, Skeleton } from '../../ui/Page';
import './sandbox.css';

const STEPS = [
  { label: 'by a day', advance: 'P1D', span: '1d' },
  { label: 'by a week', advance: 'P1W', span: '1w' },
  { label: 'by a month', advance: 'P1M', span: '1mo' },
];
type Step = (typeof STEPS)[number];

const clockQuery = queryOptions({
  queryKey: ['sandbox', 'clock'],
  queryFn: () => body(api.GET('/sandbox/clock')),
});

/** The clock of a sandbox, and its demo data. */
export default function Sandbox() {
  const { mode } = useSession();
  const canMove = useCan('sandbox:write');
  const clock = useQuery({ ...clockQuery, enabled: canMove && mode === 'sandbox' });
  const [step, setStep] = useState<Step | 'date' | null>(null);
  const close = () => setStep(null);
  if (mode !== 'sandbox') {
    return (
      <Page title="Sandbox">
        <Empty title="This service is live">Only a sandbox has a clock that can be moved.</Empty>
      </Page>
    );
  }
  const { data } = clock;
  const ahead = data && Date.parse(data.now) - Date.parse(data.real_time);
  return (
    <Page title="Sandbox" subtitle="Move time forward and see what happens to subscriptions.">
      <Section title="Clock">
        {clock.error ? (
          <Failure error={clock.error} retry={() => void clock.refetch()} />
        ) : (
          <div className="card card-padded sandbox-clock">
            <div>
              <p className="sandbox-now number">
                {data ? exact(data.now) : canMove ? <Skeleton height={28} width={240} /> : '–'}
              </p>
              <p className="muted">
                {ahead !== undefined &&
                  (ahead < DAY
                    ? 'The real time. '
                    : `${pluralize(Math.floor(ahead / DAY), 'day')} ahead of the real time. `)}
                All tenants of the sandbox share the clock, which only moves forward.
              </p>
            </div>
            <div className="page-actions">
              <span className="muted" aria-hidden="true">
                Advance
              </span>
              {STEPS.map((entry) => (
                <ScopedButton
                  key={entry.span}
                  scope="sandbox:write"
                  aria-label={`Advance ${entry.label}`}
                  onClick={() => setStep(entry)}
                >
                  {entry.label}
                </ScopedButton>
              ))}
              <ScopedButton
                scope="sandbox:write"
                aria-label="Advance to a date"
                onClick={() => setStep('date')}
              >
                to a date
              </ScopedButton>
            </div>
          </div>
        )}
      </Section>
      <Section title="Demo data">
        <div className="card card-padded sandbox-clock">
          <p className="muted">
            An empty tenant can be filled with three plans, 240 subscribers and 14 months of
            payments.
          </p>
          <DemoDataButton />
        </div>
      </Section>
      {step === 'date' && data && <AdvanceTo now={data.now} onClose={close} />}
      {step && step !== 'date' && <Advance step={step} onClose={close} />}
    </Page>
  );
}

function Effects({ clock }: { clock: Schema<'AdvancedSandboxClock'> }) {
  const effects = [
    { status: 'active', text: `${clock.renewed} renewed` },
    { status: 'past_due', text: `${clock.past_due} became past due` },
    { status: 'unpaid', text: `${clock.unpaid} became unpaid` },
    { status: 'expired', text: `${clock.expired} expired` },
  ];
  return (
    <>
      <p>It is now {exact(clock.now)}. Of the subscriptions of this tenant:</p>
      <ul className="sandbox-effects">
        {effects.map(({ status, text }) => (
          <li key={text}>
            <Link to="/subscriptions" search={{ status }}>
              {text}
            </Link>
          </li>
        ))}
      </ul>
      <p className="muted">{pluralize(clock.events, 'event')} recorded.</p>
    </>
  );
}

function Advance({ step, onClose }: { step: Step; onClose: () => void }) {
  return (
    <ActionDialog<Schema<'AdvancedSandboxClock'>>
      title={`Advance ${step.label}`}
      action="Advance"
      request={{ method: 'PUT', path: '/sandbox/clock', body: { advance: step.advance } }}
      cli={cliOf('sandbox', 'clock', 'advance', step.span)}
      result={(clock) => <Effects clock={clock} />}
      onClose={onClose}
    >
      <p>
        Everything that falls due until then happens: renewals, ended trials, expired subscriptions.
        It cannot be undone.
      </p>
    </ActionDialog>
  );
}

function AdvanceTo({ now, onClose }: { now: string; onClose: () => void }) {
  const tomorrow = isoDay(Date.parse(now) + DAY);
  const [date, setDate] = useState(tomorrow);
  const days = Math.round((Date.parse(date) - Date.parse(isoDay(Date.parse(now)))) / DAY);
  return (
    <ActionDialog<Schema<'AdvancedSandboxClock'>>
      title="Advance to a date"
      action="Advance"
      reason={date >= tomorrow ? null : 'Choose a day after today.'}
      request={{ method: 'PUT', path: '/sandbox/clock', body: { now: `${date}T00:00:00Z` } }}
      cli={days > 0 ? cliOf('sandbox', 'clock', 'advance', `${days}d`) : undefined}
      result={(clock) => <Effects clock={clock} />}
      onClose={onClose}
    >
      <Field
        label="Day"
        type="date"
        min={tomorrow}
        value={date}
        hint="At its first moment, in UTC."
        onChange={(event) => setDate(event.target.value)}
      />
      <p>
        Everything that falls due until then happens: renewals, ended trials, expired subscriptions.
        It cannot be undone.
      </p>
    </ActionDialog>
  );
}
