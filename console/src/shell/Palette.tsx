import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { useDeferredValue, useEffect, useId, useRef, useState, type KeyboardEvent } from 'react';
import { findAnything, type Found } from '../api/find';
import { useSession } from '../api/session';
import { Dialog } from '../ui/Dialog';
import { NAVIGATION } from './screens';
import './palette.css';

const TYPING_INTERVAL = 120;

/** Finds a record by any id, a user by the start of the email address, or a screen. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const { staff_member } = useSession();
  const router = useRouter();
  const list = useId();
  const [text, setText] = useState('');
  const [query, setQuery] = useState('');
  const [chosen, setChosen] = useState(0);
  const options = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const timer = setTimeout(() => setQuery(text.trim()), TYPING_INTERVAL);
    return () => clearTimeout(timer);
  }, [text]);

  const { data, isFetching, error } = useQuery({
    queryKey: ['find', query],
    queryFn: () => findAnything(query),
    enabled: query.length > 0,
    placeholderData: keepPreviousData,
  });

  const needle = useDeferredValue(text.trim().toLowerCase());
  const screens: Found[] = NAVIGATION.flatMap(({ entries }) => entries)
    .filter(({ scope }) => !scope || staff_member.scopes.includes(scope))
    .filter(({ label }) => label.toLowerCase().includes(needle))
    .map(({ to, label }) => ({ key: to, title: label, detail: 'Screen', to }));
  const found = query ? (data ?? []) : [];
  const results = [...found, ...screens];
  const selected = Math.min(chosen, results.length - 1);

  function open(result: Found) {
    onClose();
    router.history.push(
      router.options.basepath + result.to + (result.hash ? `#${result.hash}` : ''),
    );
  }

  function onKeyDown(event: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const next = (selected + step + results.length) % results.length;
      setChosen(next);
      options.current?.children[next]?.scrollIntoView({ block: 'nearest' });
    } else if (event.key === 'Enter' && results[selected]) {
      event.preventDefault();
      open(results[selected]);
    }
  }

  return (
    <Dialog open onClose={onClose} title="Find anything" showTitle={false} width="palette">
      <input
        className="palette-input"
        type="text"
        role="combobox"
        aria-label="Find anything"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={results[selected] ? `${list}-${selected}` : undefined}
        placeholder="Email address, any id, or a screen"
        autoComplete="off"
        spellCheck={false}
        maxLength={254}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div className="palette-list" id={list} role="listbox" aria-label="Results" ref={options}>
        {results.map((result, index) => (
          <div
            key={result.key}
            id={`${list}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === selected}
            className="palette-option"
            onPointerMove={() => setChosen(index)}
            onClick={() => open(result)}
            onKeyDown={onKeyDown}
          >
            <span className="palette-title">{result.title}</span>
            <span className="muted small">{result.detail}</span>
          </div>
        ))}
      </div>
      <p className="palette-foot muted small" role="status">
        {error
          ? error.message
          : isFetching
            ? 'Searching…'
            : results.length === 0
              ? 'Nothing found. An email address is found by its start, an id by all of it.'
              : '↑ ↓ to choose, Enter to open, Esc to close'}
      </p>
    </Dialog>
  );
}
