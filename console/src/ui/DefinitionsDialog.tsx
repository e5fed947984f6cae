import { words } from '../lib/words';
import { Dialog } from './Dialog';

type Props = { definitions: Record<string, string> | undefined; onClose: () => void };

/** Returns a definition with the names of fields in words. */
const textOf = (meaning: string) =>
  meaning.replaceAll(/`(\w+)`/g, (_, name: string) => `“${words(name).toLowerCase()}”`);

/** What each figure means. Others refer to MRR, which comes first. */
export default function DefinitionsDialog({ definitions, onClose }: Props) {
  const entries = Object.entries(definitions ?? {}).toSorted(
    ([a], [b]) => Number(b === 'mrr') - Number(a === 'mrr'),
  );
  return (
    <Dialog open onClose={onClose} title="Definitions" width="wide">
      <dl className="definitions">
        {entries.map(([name, meaning]) => (
          <div key={name}>
            <dt className="strong">{words(name)}</dt>
            <dd>{textOf(meaning)}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
