import { queryOptions, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, body, type Schema } from '../../api/client';
import { useSession, type Role } from '../../api/session';
import { cliOf } from '../../lib/commands';
import { pluralize } from '../../lib/money';
import { ActionDialog } from '../../ui/ActionDialog';
import { ScopedButton } from '../../ui/Button';
import { Choice } from '../../ui/Choice';
import { Field } from '../../ui/Field';
import { Once } from '../../ui/Once';
import { Empty, Page } from '../../ui/Page';
import { Table, type Column } from '../../ui/Table';
import { Time } from '../../ui/values';

type Member = Schema<'StaffMember'>;

const ROLES: { value: Role; label: string; detail: string }[] = [
  { value: 'viewer', label: 'Viewer', detail: 'reads subscribers, payments and events; no sums' },
  { value: 'support', label: 'Support', detail: 'also changes subscriptions and refunds payments' },
  { value: 'finance', label: 'Finance', detail: 'reads reports, records and refunds payments' },
  { value: 'admin', label: 'Admin', detail: 'does everything, also with staff and API keys' },
];
const roleOf = (role: Role) => ROLES.find(({ value }) => value === role)?.label ?? role;
const nameOf = ({ email, id }: Member) => email ?? id;

const staffQuery = queryOptions({
  queryKey: ['staff'],
  queryFn: () => body(api.GET('/staff')),
});

type Opened = { action: 'invite' } | { action: 'role' | 'remove'; member: Member };

/** The people who work with the console. */
export default function Staff() {
  const { staff_member } = useSession();
  const list = useQuery(staffQuery);
  const [opened, setOpened] = useState<Opened | null>(null);
  const close = () => setOpened(null);
  const rows = list.data?.data;

  /** Returns why a member cannot be changed here. */
  const reasonOf = ({ id, all_tenants }: Member) => {
    if (id === staff_member.id) return 'Another admin can change your role.';
    if (all_tenants) return 'A member of all tenants is changed with perennial staff.';
    return null;
  };
  const columns: Column<Member>[] = [
    {
      header: 'Member',
      placeholder: 180,
      cell: (member) => (
        <>
          <span className="strong">{member.email ?? 'Without email address'}</span>
          {member.id === staff_member.id && <span className="muted"> (you)</span>}
        </>
      ),
    },
    { header: 'Role', cell: ({ role }) => roleOf(role) },
    { header: 'Tenants', cell: ({ all_tenants }) => (all_tenants ? 'all' : 'this one') },
    {
      header: 'Last sign-in',
      cell: ({ last_signed_in_at: at }) =>
        at ? <Time at={at} format="day" /> : <span className="muted">invited</span>,
    },
    {
      header: 'Actions',
      align: 'end',
      placeholder: 160,
      cell: (member) => (
        <span className="row-actions">
          <ScopedButton
            scope="staff:write"
            reason={reasonOf(member)}
            aria-label={`Change role of ${nameOf(member)}`}
            onClick={() => setOpened({ action: 'role', member })}
          >
            Change role
          </ScopedButton>
          <ScopedButton
            scope="staff:write"
            reason={reasonOf(member)}
            aria-label={`Remove ${nameOf(member)}`}
            onClick={() => setOpened({ action: 'remove', member })}
          >
            Remove
          </ScopedButton>
        </span>
      ),
    },
  ];

  return (
    <Page
      title="Staff"
      subtitle={rows ? `${pluralize(rows.length, 'member')} with access to this console` : ' '}
      actions={
        <ScopedButton
          scope="staff:write"
          look="primary"
          onClick={() => setOpened({ action: 'invite' })}
        >
          Invite a colleague
        </ScopedButton>
      }
    >
      <Table
        label="Staff"
        columns={columns}
        rows={rows}
        rowKey={({ id }) => id}
        error={list.error}
        retry={() => void list.refetch()}
        expected={3}
        empty={<Empty title="No staff member">Invite a colleague by email address.</Empty>}
      />
      {opened?.action === 'invite' && <Invite onClose={close} />}
      {opened?.action === 'role' && <ChangeRole member={opened.member} onClose={close} />}
      {opened?.action === 'remove' && <Remove member={opened.member} onClose={close} />}
    </Page>
  );
}

function Invite({ onClose }: { onClose: () => void }) {
  const { tenant } = useSession();
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<Role>('viewer');
  return (
    <ActionDialog<Schema<'InvitedStaffMember'>>
      title="Invite a colleague"
      action="Invite"
      reason={email.includes('@') ? null : 'Enter an email address.'}
      request={{ method: 'POST', path: '/staff', body: { email, role } }}
      cli={cliOf('staff', 'invite', email, '--role', role, '--tenant', tenant.name)}
      result={({ link }) => (
        <Once label="sign-in link" text={link}>
          Send this link to {email}. It signs in once and works for 10 minutes. It is shown only
          now; invite again for a new one.
        </Once>
      )}
      onClose={onClose}
    >
      <Field
        label="Email address"
        type="email"
        required
        maxLength={254}
        autoComplete="off"
        value={email}
        onChange={(event) => setEmail(event.target.value.trim())}
      />
      <Choice label="Role" value={role} options={ROLES} onChange={setRole} />
    </ActionDialog>
  );
}

function ChangeRole({ member, onClose }: { member: Member; onClose: () => void }) {
  const { tenant } = useSession();
  const [role, setRole] = useState<Role>(member.role);
  return (
    <ActionDialog
      title={`Change the role of ${nameOf(member)}`}
      action="Change role"
      reason={role === member.role ? 'Choose another role.' : null}
      request={{ method: 'PUT', path: `/staff/${member.id}`, body: { role } }}
      cli={
        member.email
          ? cliOf('staff', 'invite', member.email, '--role', role, '--tenant', tenant.name)
          : undefined
      }
      onClose={onClose}
    >
      <p>The new role applies to open sessions within a second.</p>
      <Choice label="Role" value={role} options={ROLES} onChange={setRole} />
    </ActionDialog>
  );
}

function Remove({ member, onClose }: { member: Member; onClose: () => void }) {
  return (
    <ActionDialog
      title={`Remove ${nameOf(member)}`}
      action="Remove"
      look="danger"
      request={{ method: 'DELETE', path: `/staff/${member.id}` }}
      cli={cliOf('staff', 'remove', member.email ?? member.id)}
      onClose={onClose}
    >
      <p>
        The member is signed out within a second and cannot sign in again. Events keep the
        member&rsquo;s id.
      </p>
    </ActionDialog>
  );
}
