import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Relative, so that a proxy may serve the hub below a path of its own.
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2021',
    outDir: 'dist',
    // The Content-Security-Policy allows 'self' alone: no data: addresses, no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  test: { environment: 'node', include: ['src/**/*.test.ts'], pool: 'threads', poolOptions: { threads: { singleThread: true, isolate: false } } },
});
