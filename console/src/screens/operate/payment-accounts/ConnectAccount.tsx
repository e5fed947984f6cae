import { useCli } from '../../../actions/useCli';
import { CopyText } from '../../../ui/Commands';
import { Dialog } from '../../../ui/Dialog';

/** How to connect an account. The provider's API key does not belong in a browser. */
export function ConnectAccount({ onClose }: { onClose: () => void }) {
  const cliLine = useCli();
  return (
    <Dialog open onClose={onClose} title="Connect a payment account" width="wide">
      <p>
        An API key of a payment provider can move money, so that it does not go through a browser.
        Put it in a file on the machine of the service, and run one of these commands. Each adds the
        account, creates the webhook at the provider and stores its secret.
      </p>
      <CopyText
        label="command for Stripe"
        text={cliLine('payment-account', 'connect', 'stripe', '--api-key-file', 'key.txt')}
      />
      <CopyText
        label="command for Lemon Squeezy"
        text={cliLine('payment-account', 'connect', 'lemonsqueezy', '--api-key-file', 'key.txt')}
      />
      <p className="muted">The mode, test or live, is that of the API key.</p>
    </Dialog>
  );
}
