import { createLink, type LinkComponent } from '@tanstack/react-router';
import type { AnchorHTMLAttributes, ButtonHTMLAttributes, ReactNode, Ref } from 'react';
import { useSession } from '../api/session';
import './button.css';

type Look = 'plain' | 'primary' | 'danger' | 'quiet';
type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  look?: Look;
  ref?: Ref<HTMLButtonElement>;
};

export function Button({ look = 'plain', className = '', ...props }: ButtonProps) {
  return <button type="button" className={`button button-${look} ${className}`} {...props} />;
}

type AnchorProps = AnchorHTMLAttributes<HTMLAnchorElement> & {
  look?: Look;
  ref?: Ref<HTMLAnchorElement>;
};

function ButtonAnchor({ look = 'plain', className = '', children, ...props }: AnchorProps) {
  return (
    <a className={`button button-${look} ${className}`} {...props}>
      {children}
    </a>
  );
}

/** A link to a screen that looks like a button. */
export const ButtonLink: LinkComponent<typeof ButtonAnchor> = createLink(ButtonAnchor);

type ScopedButtonProps = ButtonProps & {
  scope: string;
  children: ReactNode;
  /** Why the action is not possible now, for a role that may do it. */
  reason?: string | null;
};

/** A button for an action that needs a scope. Without it, the button is disabled and says why. */
export function ScopedButton({ scope, reason, onClick, ...props }: ScopedButtonProps) {
  const { staff_member } = useSession();
  const refusal = staff_member.scopes.includes(scope)
    ? reason
    : `The role ${staff_member.role} lacks ${scope}.`;
  // aria-disabled keeps the button focusable, so that the reason can be read.
  return refusal ? (
    <Button {...props} aria-disabled="true" data-tip={refusal} />
  ) : (
    <Button {...props} onClick={onClick} />
  );
}
