import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { problemOf } from './api/problem';
import { sessionQuery } from './api/session';
import { readTheme, setTheme } from './lib/theme';
import { createConsoleRouter } from './router';
import './styles/tokens.css';
import './styles/base.css';

setTheme(readTheme());

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError(error) {
      // The session has expired or was revoked.
      if (problemOf(error)?.status === 401) queries.setQueryData(sessionQuery.queryKey, null);
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      retry: (failures, error) => failures < 2 && (problemOf(error)?.status ?? 500) >= 500,
    },
  },
});

// The session and the code of the screen load at the same time.
void queries.prefetchQuery(sessionQuery);

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={createConsoleRouter(queries)} />
    </QueryClientProvider>
  </StrictMode>,
);
