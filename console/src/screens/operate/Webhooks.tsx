import { getRouteApi } from '@tanstack/react-router';
import { EndpointList } from './webhooks/EndpointList';
import { EndpointPage } from './webhooks/EndpointPage';

const route = getRouteApi('/webhooks');

export default function Webhooks() {
  const { endpoint } = route.useSearch();
  return endpoint ? <EndpointPage key={endpoint} id={endpoint} /> : <EndpointList />;
}
