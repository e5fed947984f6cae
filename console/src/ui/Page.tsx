import { useEffect, type ReactNode } from 'react';
import { problemOf } from '../api/problem';
import { Button } from './Button';
import './page.css';

type PageProps = {
  title: string;
  /** Shown instead of the title, which stays the title of the document. */
  heading?: ReactNode;
  subtitle?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
};

/** A screen: its heading, actions and content. */
export function Page({ title, heading, subtitle, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Perennial`;
  }, [title]);
  return (
    <div className="page">
      <header className="page-header">
        <div className="page-heading">
          <h1 className="break">{heading ?? title}</h1>
          {subtitle && <div className="page-subtitle">{subtitle}</div>}
        </div>
        {actions && <div className="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

type SectionProps = { title: string; aside?: ReactNode; children: ReactNode; id?: string };

/** A titled part of a screen. */
export function Section({ title, aside, children, id }: SectionProps) {
  return (
    <section className="section" aria-label={title} id={id}>
      <div className="section-header">
        <h2>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

/** A bordered surface. */
export function Card({ children, className = '' }: { children: ReactNode; className?: string }) {
  return <div className={`card ${className}`}>{children}</div>;
}

/** What a list without rows shows: what would be here, and how it gets here. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="strong">{title}</p>
      {children && <div className="muted">{children}</div>}
    </div>
  );
}

/** A failed request: the problem's detail, its request id, and a way to try again. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const failure = problemOf(error);
  const title = failure?.problem.title ?? 'No response from the service';
  const detail = failure?.message ?? 'Check the connection, then try again.';
  return (
    <div className="failure" role="alert">
      <p className="strong">{title}</p>
      <p className="break">{detail}</p>
      {failure?.problem.errors?.map((entry) => (
        <p key={`${entry.pointer} ${entry.message}`} className="break">
          <code>{entry.pointer}</code> {entry.message}
        </p>
      ))}
      {failure?.problem.request_id && (
        <p className="muted small break">
          Request <code>{failure.problem.request_id}</code>
        </p>
      )}
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** A placeholder of the given height while content loads. */
export function Skeleton({ height, width }: { height: number; width?: number | string }) {
  return <span className="skeleton" style={{ height, width }} aria-hidden="true" />;
}
