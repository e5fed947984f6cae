import { Menu } from '@base-ui/react/menu';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { useState, type RefObject } from 'react';
import { sessionQuery, signOut, switchTenant, useSession } from '../api/session';
import { readTheme, setTheme, THEMES, type Theme } from '../lib/theme';

type Props = { anchor: RefObject<HTMLElement | null>; openHelp: () => void; onClose: () => void };

/** Who is signed in, the tenant, the theme, and signing out. */
export default function StaffMenu({ anchor, openHelp, onClose }: Props) {
  const { staff_member, tenant, tenants, version } = useSession();
  const queries = useQueryClient();
  const router = useRouter();
  const [theme, updateTheme] = useState(readTheme);
  const leave = useMutation({
    mutationFn: signOut,
    onSettled: () => {
      queries.clear();
      queries.setQueryData(sessionQuery.queryKey, null);
    },
  });
  const change = useMutation({
    mutationFn: switchTenant,
    onSuccess: async (session) => {
      queries.clear();
      queries.setQueryData(sessionQuery.queryKey, session);
      await router.navigate({ to: '/' });
    },
  });

  return (
    <Menu.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Menu.Portal container={anchor.current?.parentElement}>
        <Menu.Positioner anchor={anchor} align="end" sideOffset={6} className="menu-positioner">
          <Menu.Popup className="menu">
            <div className="menu-head">
              <div className="strong break">{staff_member.email ?? 'Signed in with a link'}</div>
              <div className="muted small">
                {staff_member.role} of {tenant.name}
              </div>
            </div>
            {tenants.length > 1 && (
              <Menu.RadioGroup
                value={tenant.id}
                onValueChange={(id: string) => change.mutate(id)}
                className="menu-group"
              >
                <div className="menu-label">Tenant</div>
                {tenants.map(({ id, name }) => (
                  <Menu.RadioItem key={id} value={id} className="menu-item">
                    {name}
                    <Menu.RadioItemIndicator className="menu-check">✓</Menu.RadioItemIndicator>
                  </Menu.RadioItem>
                ))}
              </Menu.RadioGroup>
            )}
            <Menu.RadioGroup
              value={theme}
              onValueChange={(value: Theme) => {
                setTheme(value);
                updateTheme(value);
              }}
              className="menu-group"
            >
              <div className="menu-label">Appearance</div>
              {THEMES.map(({ value, label }) => (
                <Menu.RadioItem
                  key={value}
                  value={value}
                  className="menu-item"
                  closeOnClick={false}
                >
                  {label}
                  <Menu.RadioItemIndicator className="menu-check">✓</Menu.RadioItemIndicator>
                </Menu.RadioItem>
              ))}
            </Menu.RadioGroup>
            <div className="menu-group">
              <Menu.Item className="menu-item" onClick={openHelp}>
                Keyboard shortcuts <kbd>?</kbd>
              </Menu.Item>
              <Menu.LinkItem className="menu-item" href="/docs">
                Documentation
              </Menu.LinkItem>
              <Menu.Item className="menu-item" onClick={() => leave.mutate()}>
                Sign out
              </Menu.Item>
            </div>
            <div className="menu-foot muted small">Version {version}</div>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
