import { Link } from '@tanstack/react-router';
import { useSession } from '../api/session';
import { NAVIGATION } from './screens';

/** The links to all screens. */
export function Navigation() {
  const { staff_member } = useSession();
  return (
    <div className="navigation">
      {NAVIGATION.map((group) => (
        <div key={group.title ?? ''} className="navigation-group">
          {group.title && <div className="navigation-title">{group.title}</div>}
          <ul>
            {group.entries.map(({ to, label, scope }) => (
              <li key={to}>
                {!scope || staff_member.scopes.includes(scope) ? (
                  <Link
                    to={to}
                    className="navigation-link"
                    activeOptions={{ exact: to === '/', includeSearch: false }}
                  >
                    {label}
                  </Link>
                ) : (
                  <span
                    className="navigation-link"
                    role="link"
                    aria-disabled="true"
                    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the reason appears on focus
                    tabIndex={0}
                    data-tip={`The role ${staff_member.role} lacks ${scope}.`}
                  >
                    {label}
                  </span>
                )}
              </li>
            ))}
          </ul>
        </div>
      ))}
    </div>
  );
}
