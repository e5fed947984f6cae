import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const service = process.env.PERENNIAL_URL ?? 'http://127.0.0.1:8080';

export default defineConfig({
  base: '/console/',
  plugins: [react()],
  build: {
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 400,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: {
      '^/(?!console/)': { target: service },
      '^/console/(session|sign-in|callback)': { target: service },
    },
  },
  test: { include: ['src/**/*.test.ts'] },
} as Parameters<typeof defineConfig>[0]);
