import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, type ReactNode } from 'react';
import { curlOf, send, type ChangeRequest } from '../lib/commands';
import { Button } from './Button';
import { Commands } from './Commands';
import { Dialog } from './Dialog';
import { Failure } from './Page';

type Props<Result> = {
  title: string;
  /** What the action does, and its fields. */
  children: ReactNode;
  /** Label of the button. */
  action: string;
  /** Label of the button that closes the dialog. */
  dismiss?: string;
  look?: 'primary' | 'danger';
  /** Why the fields cannot be sent yet. */
  reason?: string | null;
  request: ChangeRequest;
  /** Sends the request. Default: `send`, which parses the response. */
  sendRequest?: (request: ChangeRequest) => Promise<Result>;
  /** The same as a command of the service. */
  cli?: string;
  /** Shown instead of the fields after the action. Without it, the dialog closes. */
  result?: (result: Result) => ReactNode;
  onDone?: (result: Result) => void;
  onClose: () => void;
  /** Whether `onDone` moves the focus, because the button may have vanished. Otherwise it goes back. */
  movesFocus?: boolean;
};

/** Confirms an action, shows its curl and CLI lines, and reads all data again after it. */
export function ActionDialog<Result>(props: Props<Result>) {
  const { title, children, action, look = 'primary', reason, request, cli, onClose } = props;
  const client = useQueryClient();
  const isDone = useRef(false);
  const { mutate, data, error, isPending, isSuccess } = useMutation({
    mutationFn: () => (props.sendRequest ?? send<Result>)(request),
    onSuccess: async (result) => {
      await client.invalidateQueries();
      isDone.current = true;
      props.onDone?.(result);
      if (!props.result) onClose();
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      width="wide"
      finalFocus={() => !(isDone.current && props.movesFocus)}
    >
      {isSuccess && props.result ? (
        <>
          {props.result(data)}
          <div className="dialog-actions">
            <Button look="primary" onClick={onClose}>
              Done
            </Button>
          </div>
        </>
      ) : (
        <form
          className="action-form"
          onSubmit={(event) => {
            event.preventDefault();
            if (!reason && !isPending) mutate();
          }}
        >
          {children}
          <Commands curl={curlOf(request, window.location.origin)} cli={cli} />
          {error && <Failure error={error} />}
          <div className="dialog-actions">
            <Button onClick={onClose}>{props.dismiss ?? 'Cancel'}</Button>
            <Button
              type="submit"
              look={look}
              aria-disabled={reason || isPending ? 'true' : undefined}
              data-tip={reason ?? undefined}
            >
              {isPending ? 'Sending…' : action}
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  );
}
