import type { ReactNode } from 'react';
import './facts.css';

/** Names and values of a record, one per line. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className="fact-list">{children}</dl>;
}

export function Fact({ name, children }: { name: ReactNode; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
