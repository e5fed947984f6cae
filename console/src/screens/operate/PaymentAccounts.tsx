import { getRouteApi } from '@tanstack/react-router';
import { AccountList } from './payment-accounts/AccountList';
import { AccountPage } from './payment-accounts/AccountPage';

const route = getRouteApi('/payment-accounts');

export default function PaymentAccounts() {
  const { account } = route.useSearch();
  return account ? <AccountPage key={account} id={account} /> : <AccountList />;
}
