// A browser on a hub: the mock one, or the one at FURLONG_HUB_URL.

import { access, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { startMock } from './mock/server.mjs';

export const real = process.env.FURLONG_HUB_URL?.replace(/\/$/, '');
const shots = process.env.FURLONG_SHOTS;
const executablePath = process.env.FURLONG_CHROMIUM || '/usr/bin/chromium';
const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

export async function launch() {
  await access(executablePath);
  return chromium.launch({ executablePath, headless: true, args });
}

/** mock: undefined where the hub is a real one. The browser has a profile of its own in a new folder, and leaves none. */
export async function start() {
  if (shots) await mkdir(shots, { recursive: true });
  const mock = real ? undefined : await startMock();
  const url = real ?? mock.url;
  const browser = await launch();
  return { mock, url, browser, stop: async () => { await browser.close(); await mock?.stop(); } };
}

export async function getJson(url, path) {
  const reply = await fetch(`${url}/${path}`);
  if (!reply.ok) throw new Error(`${path}: ${reply.status}`);
  return reply.json();
}

/** Every view that the hub has data for: name → hash. */
export async function placesOf(url) {
  const { cards } = await getJson(url, 'v1/cards');
  const { races } = await getJson(url, 'v1/races?limit=1');
  const { programs } = await getJson(url, 'v1/knobs');
  const places = { home: '#/', cards: '#/cards', races: '#/races', machines: '#/machines', rollout: '#/rollout', regressions: '#/regressions', knobs: '#/knobs' };
  if (cards.length) places.card = `#/cards/${encodeURIComponent(cards[0].key)}`;
  if (races.length) places.race = `#/races/${races[0].id}`;
  const [most] = programs.sort((a, b) => b.races - a.races);
  if (most) places['knobs-of-a-program'] = `#/knobs/${encodeURIComponent(most.program)}`;
  return places;
}

/** A page whose complaints are kept: console errors, exceptions, requests to others, breaches of the policy. */
export async function newPage(world, { width = 1440, height = 900, scheme = 'light', motion = 'no-preference', allow = [] } = {}) {
  const context = await world.browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: motion });
  const page = await context.newPage();
  const complaints = [];
  const complain = (text) => {
    if (!allow.some((pattern) => pattern.test(text))) complaints.push(text);
  };
  page.on('console', (m) => { if (['error', 'warning'].includes(m.type())) complain(`console: ${m.text()}`); });
  page.on('pageerror', (e) => complain(`exception: ${e.message}`));
  page.on('request', (r) => { if (!r.url().startsWith(`${world.url}/`)) complain(`a request to ${r.url()}`); });
  await page.addInitScript(() => document.addEventListener('securitypolicyviolation', (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`)));
  return { page, complaints, close: () => context.close() };
}

export async function open(world, page, hash) {
  await page.goto(`${world.url}/${hash}`);
  await settled(page);
}

export async function settled(page) {
  await page.waitForSelector('main h1');
  await page.waitForFunction(() => !document.querySelector('main [data-state=loading]') && document.querySelector('.live.good, .live.bad, .live[data-state=paused]'));
}

export async function shoot(page, name) {
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}
