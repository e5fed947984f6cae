import { useState } from 'react';
import { Button } from './Button';
import './commands.css';

/** How long a copied text says so. */
const COPIED_INTERVAL = 1200;

/** Text to copy, such as a command or a secret. */
export function CopyText({ label, text }: { label: string; text: string }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <div className="copy-text">
      <pre
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- long lines scroll
        tabIndex={0}
        aria-label={label}
        role="group"
      >
        {text}
      </pre>
      <Button
        look="quiet"
        aria-label={`Copy ${label}`}
        onClick={() => {
          void navigator.clipboard?.writeText(text);
          setCopied(true);
          setTimeout(() => setCopied(false), COPIED_INTERVAL);
        }}
      >
        {isCopied ? 'Copied' : 'Copy'}
      </Button>
    </div>
  );
}

/** An action as a request of curl and as a command of the service. */
export function Commands({ curl, cli }: { curl: string; cli: string | undefined }) {
  return (
    <details className="commands">
      <summary>As curl{cli && ' and command'}</summary>
      <CopyText label="curl" text={curl} />
      {cli && <CopyText label="command" text={cli} />}
    </details>
  );
}

/** A value as indented JSON, rendered as text. */
export function Json({ label, value }: { label: string; value: unknown }) {
  return (
    <pre
      className="json"
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- long lines scroll
      tabIndex={0}
      aria-label={label}
      role="group"
    >
      {JSON.stringify(value, null, 2)}
    </pre>
  );
}
