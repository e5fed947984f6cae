import { useState } from 'react';
import { hasSingleKeys, setSingleKeys } from '../lib/hotkeys';
import { Dialog } from '../ui/Dialog';

const KEYS: [string[], string][] = [
  [['⌘ K', 'Ctrl K', '/'], 'Find a subscriber, subscription, payment or screen'],
  [['j', 'k'], 'Next and previous row'],
  [['Enter'], 'Open the row'],
  [['Tab'], 'Next control'],
  [['Esc'], 'Close a dialog'],
  [['?'], 'This help'],
];

/** The keyboard shortcuts. */
export default function Help({ onClose }: { onClose: () => void }) {
  const [singleKeys, update] = useState(hasSingleKeys);
  return (
    <Dialog open onClose={onClose} title="Keyboard shortcuts">
      <dl className="help-keys">
        {KEYS.map(([keys, effect]) => (
          <div key={effect}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{effect}</dd>
          </div>
        ))}
      </dl>
      <label className="help-choice">
        <input
          type="checkbox"
          checked={singleKeys}
          onChange={(event) => {
            setSingleKeys(event.target.checked);
            update(event.target.checked);
          }}
        />
        Use keys without Ctrl or ⌘ as shortcuts
      </label>
    </Dialog>
  );
}
