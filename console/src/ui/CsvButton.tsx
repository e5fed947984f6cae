import { useMutation } from '@tanstack/react-query';
import { download } from '../lib/csv';
import { Button } from './Button';

type Props = { name: string; read: () => Promise<string> };

/** Downloads the rows of a list or the figures of a report. */
export function CsvButton({ name, read }: Props) {
  const { mutate, isPending, error } = useMutation({
    mutationFn: async () => download(name, await read()),
  });
  return (
    <Button
      onClick={() => mutate()}
      disabled={isPending}
      data-tip={error ? `Failed: ${error.message}` : undefined}
    >
      {isPending ? 'Reading…' : error ? 'CSV failed, try again' : 'CSV'}
    </Button>
  );
}
