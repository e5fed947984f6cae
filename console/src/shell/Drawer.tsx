import { Dialog } from '../ui/Dialog';
import { Navigation } from './Navigation';

/** The navigation on narrow screens. */
export default function Drawer({ onClose }: { onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} title="Perennial" width="drawer">
      <nav aria-label="Screens">
        <Navigation />
      </nav>
    </Dialog>
  );
}
