// SPDX-License-Identifier: Apache-2.0
// The build writes dist/: index.html and hashed files below assets/. `npm run dev` serves the sources and gives
// everything else to a daemon (SANDLOT_URL, SANDLOT_TOKEN), with the token, as if somebody had signed in.
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const daemon = process.env.SANDLOT_URL ?? 'http://127.0.0.1:9090';
const headers = { origin: daemon, ...(process.env.SANDLOT_TOKEN ? { authorization: `Bearer ${process.env.SANDLOT_TOKEN}` } : {}) };
const toDaemon = { target: daemon, changeOrigin: true, ws: true, headers, rewriteWsOrigin: true };

export default defineConfig({
  plugins: [react()],
  build: { target: 'es2022', assetsInlineLimit: 0, chunkSizeWarningLimit: 600, modulePreload: { polyfill: false } },
  server: { proxy: { '/v1': toDaemon, '/openapi.json': toDaemon, '/metrics': toDaemon, '/readyz': toDaemon, '/healthz': toDaemon } },
});
