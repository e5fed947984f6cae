import { useDeferredValue, type ReactNode } from 'react';

type Props = { children: ReactNode; placeholder?: ReactNode };

/** Renders its content in the background after the rest of the screen, so that the screen appears early. */
export function Later({ children, placeholder }: Props) {
  const isReady = useDeferredValue(true, false);
  return isReady ? children : placeholder;
}
