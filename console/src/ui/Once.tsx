import type { ReactNode } from 'react';
import { CopyText } from './Commands';

type Props = { label: string; text: string | null; children: ReactNode };

/** A secret that is shown once. A response to a repeated request lacks it. */
export function Once({ label, text, children }: Props) {
  return (
    <div className="once">
      <p>{children}</p>
      {text ? (
        <CopyText label={label} text={text} />
      ) : (
        <p className="muted">It was shown before and cannot be read again.</p>
      )}
    </div>
  );
}
