import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, body, type Schema } from '../../api/client';
import { words } from '../../lib/words';
import { Button } from '../../ui/Button';
import { Empty, Page, Skeleton } from '../../ui/Page';
import { Badge, GLYPH, type Tone } from '../../ui/Status';
import { Table, type Column } from '../../ui/Table';
import { Time } from '../../ui/values';

type Check = Schema<'HealthCheck'>;
type Status = Schema<'HealthStatus'>;

const LOOK: Record<Status, { word: string; tone: Tone; glyph: React.ReactNode; order: number }> = {
  failed: { word: 'Failed', tone: 'red', glyph: GLYPH.square, order: 0 },
  warning: { word: 'Warning', tone: 'amber', glyph: GLYPH.triangle, order: 1 },
  ok: { word: 'OK', tone: 'green', glyph: GLYPH.check, order: 2 },
};

const healthQuery = queryOptions({
  queryKey: ['health'],
  queryFn: () => body(api.GET('/health')),
});

function StatusBadge({ status }: { status: Status }) {
  const { word, tone, glyph } = LOOK[status];
  return (
    <Badge tone={tone} glyph={glyph}>
      {word}
    </Badge>
  );
}

/** A text of the service, with commands in backticks as code. */
function Advice({ text }: { text: string }) {
  return text.split('`').map((part, index) =>
    // oxlint-disable-next-line react/no-array-index-key -- the parts of a text do not move
    index % 2 ? <code key={index}>{part}</code> : part,
  );
}

/** The checks of `perennial doctor`: what was found, what fixes it, and the page that explains it. */
export default function Health() {
  const { data, error, refetch, isFetching } = useQuery(healthQuery);
  const checks = data?.checks.toSorted((a, b) => LOOK[a.status].order - LOOK[b.status].order);
  const columns: Column<Check>[] = [
    { header: 'Check', cell: ({ name }) => <span className="strong">{words(name)}</span> },
    { header: 'Status', placeholder: 60, cell: ({ status }) => <StatusBadge status={status} /> },
    {
      header: 'Found',
      placeholder: 280,
      cell: ({ detail, fix }) => (
        <>
          <div>
            <Advice text={detail} />
          </div>
          {fix && (
            <div className="muted">
              Fix: <Advice text={fix} />
            </div>
          )}
        </>
      ),
    },
    {
      header: 'Runbook',
      align: 'end',
      cell: ({ runbook }) =>
        runbook ? (
          <a href={runbook} className="nowrap">
            {words(runbook.split('/').at(-1)?.replaceAll('-', '_') ?? '')}
          </a>
        ) : null,
    },
  ];
  return (
    <Page
      title="Health"
      subtitle={
        data ? (
          <>
            <StatusBadge status={data.status} />
            <span>
              Checked <Time at={data.checked_at} format="clock" />
            </span>
            <span>
              The same as <code>perennial doctor</code>
            </span>
          </>
        ) : (
          <Skeleton height={16} width={220} />
        )
      }
      actions={
        <Button onClick={() => void refetch()} disabled={isFetching}>
          {isFetching ? 'Checking…' : 'Check again'}
        </Button>
      }
    >
      <Table
        label="Checks"
        columns={columns}
        rows={checks}
        rowKey={({ name, detail }) => `${name} ${detail}`}
        error={error}
        retry={() => void refetch()}
        empty={<Empty title="No check" />}
      />
    </Page>
  );
}
