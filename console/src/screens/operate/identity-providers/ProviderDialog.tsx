import { useState } from 'react';
import type { Schema } from '../../../api/client';
import { useSession } from '../../../api/session';
import { cliOf } from '../../../lib/commands';
import { ActionDialog } from '../../../ui/ActionDialog';
import { Checks } from '../../../ui/Checks';
import { Choice } from '../../../ui/Choice';
import { Field } from '../../../ui/Field';

export type Provider = Schema<'IdentityProvider'>;
type Method = Schema<'VerifyMethod'>;

const METHODS: { value: Method; label: string; detail: string }[] = [
  { value: 'jwt', label: 'JWT', detail: 'with the keys that the provider publishes' },
  { value: 'introspection', label: 'Introspection', detail: 'asks the provider (RFC 7662)' },
  { value: 'tokeninfo', label: 'Tokeninfo', detail: 'asks an endpoint of the provider' },
  { value: 'userinfo', label: 'Userinfo', detail: 'asks the provider; accepts any audience' },
];

const ACCEPTS = [
  { value: 'accept_id_tokens', label: 'ID tokens' },
  { value: 'accept_azp', label: 'The audience in azp' },
  { value: 'accept_bound_tokens', label: 'Bound tokens, unchecked' },
] as const;
type Accept = (typeof ACCEPTS)[number]['value'];

type Props = { provider?: Provider; onClose: () => void };

/** Adds an identity provider, or changes one. */
export function ProviderDialog({ provider, onClose }: Props) {
  const { tenant } = useSession();
  const [issuer, setIssuer] = useState(provider?.issuer ?? '');
  const [verify, setVerify] = useState<Method>(provider?.verify ?? 'jwt');
  const [audience, setAudience] = useState(provider?.audiences.join(' ') ?? '');
  const [endpoint, setEndpoint] = useState(provider?.endpoint ?? '');
  const [clientId, setClientId] = useState(provider?.client_id ?? '');
  const [secret, setSecret] = useState('');
  const [accepts, setAccepts] = useState<Accept[]>(
    ACCEPTS.map(({ value }) => value).filter((value) => provider?.[value]),
  );
  const audiences = audience.split(/[\s,]+/).filter(Boolean);
  const isIntrospection = verify === 'introspection';
  const isUserinfo = verify === 'userinfo';
  const hasEndpoint = isIntrospection || verify === 'tokeninfo';
  const reason = !issuer
    ? 'Enter the issuer URL.'
    : !isUserinfo && audiences.length === 0
      ? 'Enter an audience.'
      : verify === 'tokeninfo' && !endpoint
        ? 'Enter the endpoint.'
        : isIntrospection && (!clientId || (!secret && provider?.verify !== verify))
          ? 'Enter the client id and its secret.'
          : null;
  const settings = {
    verify,
    audiences: isUserinfo ? [] : audiences,
    endpoint: hasEndpoint && endpoint ? endpoint : null,
    client_id: isIntrospection ? clientId : null,
    ...(isIntrospection ? secret && { client_secret: secret } : { client_secret: null }),
    accept_any_audience: isUserinfo,
    ...Object.fromEntries(ACCEPTS.map(({ value }) => [value, accepts.includes(value)])),
  };
  const flags = [
    ...(isUserinfo ? ['--accept-any-audience'] : audiences.flatMap((item) => ['--audience', item])),
    ...(verify === 'jwt' ? [] : ['--verify', verify]),
    ...(settings.endpoint ? ['--endpoint', settings.endpoint] : []),
    ...(isIntrospection ? ['--client-id', clientId, '--client-secret-file', 'secret.txt'] : []),
    ...accepts.map((value) => `--${value.replaceAll('_', '-')}`),
  ];
  return (
    <ActionDialog
      title={provider ? `Change ${provider.issuer}` : 'Add an identity provider'}
      action={provider ? 'Change' : 'Add'}
      reason={reason}
      request={
        provider
          ? { method: 'PUT', path: `/identity-providers/${provider.id}`, body: settings }
          : { method: 'POST', path: '/identity-providers', body: { issuer, ...settings } }
      }
      cli={
        provider
          ? undefined
          : cliOf('provider', 'add', '--tenant', tenant.name, '--issuer', issuer, ...flags)
      }
      onClose={onClose}
    >
      {!provider && (
        <Field
          label="Issuer URL"
          hint="Exactly the iss claim of its tokens."
          placeholder="https://id.example.com"
          type="url"
          required
          maxLength={2000}
          autoComplete="off"
          value={issuer}
          onChange={(event) => setIssuer(event.target.value.trim())}
        />
      )}
      <Choice
        label="Tokens are verified by"
        value={verify}
        options={METHODS}
        onChange={setVerify}
      />
      {!isUserinfo && (
        <Field
          label="Audiences"
          hint="The aud claim of tokens for your product, several separated by spaces."
          placeholder="my-product"
          autoComplete="off"
          value={audience}
          onChange={(event) => setAudience(event.target.value)}
        />
      )}
      {hasEndpoint && (
        <Field
          label="Endpoint"
          hint={isIntrospection ? 'Empty: the one of the discovery document.' : undefined}
          type="url"
          autoComplete="off"
          value={endpoint}
          onChange={(event) => setEndpoint(event.target.value.trim())}
        />
      )}
      {isIntrospection && (
        <>
          <Field
            label="Client id"
            maxLength={255}
            autoComplete="off"
            value={clientId}
            onChange={(event) => setClientId(event.target.value)}
          />
          <Field
            label="Client secret"
            hint={provider?.verify === verify ? 'Empty: keeps the current one.' : undefined}
            type="password"
            maxLength={1000}
            autoComplete="new-password"
            value={secret}
            onChange={(event) => setSecret(event.target.value)}
          />
        </>
      )}
      <Checks label="Also accept" values={accepts} options={[...ACCEPTS]} onChange={setAccepts} />
    </ActionDialog>
  );
}
