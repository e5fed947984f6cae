import { useSuspenseQuery } from '@tanstack/react-query';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { SessionContext, sessionQuery, useSession } from '../api/session';
import icon from '../icon.svg';
import { moveRow, useHotkeys } from '../lib/hotkeys';
import { Empty, Page, Skeleton } from '../ui/Page';
import { Tooltip } from '../ui/Tooltip';
import { Navigation } from './Navigation';
import { SandboxBadge } from './SandboxBadge';
import { entryOf } from './screens';
import { hasLink, SignIn } from './SignIn';
import './shell.css';

const Palette = lazy(() => import('./Palette'));
const Help = lazy(() => import('./Help'));
const Drawer = lazy(() => import('./Drawer'));
const StaffMenu = lazy(() => import('./StaffMenu'));

/** The page around every screen; without a session, the sign-in page. */
export function Shell() {
  const { data: session } = useSuspenseQuery(sessionQuery);
  // A link also signs in if there is a session already.
  const [isLinkOpen, setLinkOpen] = useState(hasLink);
  const close = () => setLinkOpen(false);
  if (!session || isLinkOpen) return <SignIn onDone={close} />;
  return (
    <SessionContext value={session}>
      <SignedIn />
    </SessionContext>
  );
}

function SignedIn() {
  const [opened, setOpened] = useState<'palette' | 'help' | 'drawer' | 'staff' | null>(null);
  const pathname = useRouterState({ select: (state) => state.location.pathname });
  const main = useRef<HTMLElement>(null);
  const staffButton = useRef<HTMLButtonElement>(null);
  const session = useSession();
  const close = () => setOpened(null);

  // A new screen starts at its heading for keyboard and screen reader users.
  const previous = useRef(pathname);
  useEffect(() => {
    if (previous.current === pathname) return;
    previous.current = pathname;
    setOpened(null);
    main.current?.focus({ preventScroll: true });
  }, [pathname]);

  useHotkeys({
    'mod+k': () => setOpened('palette'),
    '/': () => setOpened('palette'),
    '?': () => setOpened('help'),
    j: () => moveRow(1),
    k: () => moveRow(-1),
  });

  return (
    <div className="shell">
      <a href="#main" className="skip-link">
        Skip to content
      </a>
      <header className="topbar">
        <button
          type="button"
          className="menu-button"
          aria-label="Open the navigation"
          onClick={() => setOpened('drawer')}
        >
          <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
            <path d="M2 4h12M2 8h12M2 12h12" className="glyph-line" />
          </svg>
        </button>
        <Link to="/" className="brand">
          <img src={icon} width="24" height="24" alt="" />
          <span className="brand-name">Perennial</span>
        </Link>
        <SandboxBadge />
        <button type="button" className="find-button" onClick={() => setOpened('palette')}>
          <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
            <path d="M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.6-1.4L14 14" className="glyph-line" />
          </svg>
          <span className="find-text">Find anything</span>
          <kbd className="find-key">{/Mac/.test(navigator.platform) ? '⌘K' : 'Ctrl K'}</kbd>
        </button>
        <button
          type="button"
          className="staff-button"
          ref={staffButton}
          aria-haspopup="menu"
          aria-expanded={opened === 'staff'}
          onClick={() => setOpened('staff')}
        >
          {session.staff_member.role}
          <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
            <path d="m3 4.5 3 3 3-3" className="glyph-line" />
          </svg>
        </button>
      </header>
      <nav className="sidebar" aria-label="Screens">
        <Navigation />
      </nav>
      <main className="main" id="main" ref={main} tabIndex={-1}>
        <Suspense fallback={<Loading />}>
          <Screen />
        </Suspense>
      </main>
      <Suspense>
        {opened === 'palette' && <Palette onClose={close} />}
        {opened === 'help' && <Help onClose={close} />}
        {opened === 'drawer' && <Drawer onClose={close} />}
        {opened === 'staff' && (
          <StaffMenu anchor={staffButton} openHelp={() => setOpened('help')} onClose={close} />
        )}
      </Suspense>
      <Tooltip />
    </div>
  );
}

/** The screen of the route, unless the role lacks the scope to read it. */
function Screen() {
  const { staff_member } = useSession();
  const route = useRouterState({ select: (state) => state.matches.at(-1)?.routeId ?? '' });
  const { label, scope } = entryOf(route) ?? {};
  if (!label || !scope || staff_member.scopes.includes(scope)) return <Outlet />;
  return (
    <Page title={label}>
      <div className="card">
        <Empty title={`Not part of the role ${staff_member.role}`}>
          This screen needs the scope <code>{scope}</code>. An admin can give you another role.
        </Empty>
      </div>
    </Page>
  );
}

function Loading() {
  return (
    <div className="page" aria-busy="true">
      <Skeleton height={28} width={180} />
    </div>
  );
}
