import { Dialog as Base } from '@base-ui/react/dialog';
import type { ReactNode } from 'react';
import './dialog.css';

type DialogProps = {
  open: boolean;
  onClose: () => void;
  title: string;
  /** Visible title. The palette has none. */
  showTitle?: boolean;
  width?: 'narrow' | 'wide' | 'palette' | 'drawer';
  children: ReactNode;
  /** Returns whether the focus goes back when it closes. */
  finalFocus?: () => boolean;
};

/** A modal dialog that returns the focus when it closes. */
export function Dialog(props: DialogProps) {
  const { open, onClose, title, showTitle = true, width = 'narrow', children } = props;
  return (
    <Base.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="dialog-backdrop" />
        <Base.Popup className={`dialog dialog-${width}`} finalFocus={props.finalFocus}>
          <Base.Title className={showTitle ? 'dialog-title' : 'hidden-text'}>{title}</Base.Title>
          {children}
          {showTitle && (
            <Base.Close className="dialog-close" aria-label="Close">
              <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
                <path d="m4 4 8 8m0-8-8 8" className="glyph-line" />
              </svg>
            </Base.Close>
          )}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
