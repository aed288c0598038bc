// Pictures of every view of a hub's dashboard, or of those named: `node test/screenshots.mjs HUB_URL FOLDER [VIEW …]` writes
// FOLDER/VIEW-THEME-WIDTH.png, in both themes, at 1280 and 390 px. What the hub cannot be told to be is played: an empty fleet, a hub that is gone, one that answers
// with errors. FURLONG_CHROMIUM: the browser.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { launch, newPage, open, placesOf } from './harness.mjs';
import { emptyFleet } from './mock/data.mjs';

const [given, folder, ...wanted] = process.argv.slice(2);
if (!given || !folder) {
  console.error('usage: node test/screenshots.mjs HUB_URL FOLDER [VIEW …]');
  process.exit(2);
}
const url = given.replace(/\/$/, '');
await mkdir(folder, { recursive: true });
const browser = await launch();

const lists = { home: '#/', cards: '#/cards', races: '#/races', machines: '#/machines', rollout: '#/rollout', regressions: '#/regressions', knobs: '#/knobs' };
const answers = async (page, of) => page.route(`${url}/v1/**`, async (route) => {
  const answer = of(new URL(route.request().url()).pathname.replace(/^.*\/v1\//, ''));
  return route.fulfill({ status: answer.error ? 503 : 200, contentType: 'application/json', body: JSON.stringify({ schema: 1, ...answer }) });
});

function ofNothing(path) {
  const none = emptyFleet();
  const known = { summary: none.summary, cards: { cards: [], races: 0, window_days: 7 }, races: { races: [] }, machines: { machines: [] }, regressions: none.regressions, rollout: none.rollout, knobs: { programs: [] } };
  return known[path] ?? { error: { code: 'invalid', message: `nothing is at ${path}` } };
}

/** Each: its name, its address, and what is played before it is opened or after. */
async function shots() {
  const every = Object.entries(await placesOf(url)).map(([name, hash]) => ({ name, hash }));
  const gone = (page) => page.route(`${url}/v1/**`, (route) => route.abort());
  const failing = (page) => answers(page, () => ({ error: { code: 'unavailable', message: 'store: the database is locked' } }));
  return [
    ...every,
    { name: 'machines-behind', hash: '#/machines?show=behind' },
    ...Object.entries(lists).map(([name, hash]) => ({ name: `empty-${name}`, hash, before: (page) => answers(page, ofNothing) })),
    { name: 'lost-home', hash: '#/', before: gone },
    { name: 'lost-rollout', hash: '#/rollout', before: gone },
    { name: 'lost-cards-with-old-figures', hash: '#/cards', after: gone },
    { name: 'error-home', hash: '#/', before: failing },
    { name: 'error-regressions', hash: '#/regressions', before: failing },
    { name: 'no-such-page', hash: '#/nothing/here' },
    { name: 'no-such-card', hash: '#/cards/no_such_card' },
    { name: 'no-such-race', hash: '#/races/01956a3c-8f00-7abc-8def-0123456789ab' },
    { name: 'menu', hash: '#/', after: (page) => page.locator('.menu').click(), only: 390 },
    { name: 'help', hash: '#/', after: (page) => page.getByRole('button', { name: /Keyboard/ }).click(), window: true },
  ];
}

let made = 0;
const every = await shots();
const unknown = wanted.filter((name) => !every.some((shot) => shot.name === name));
if (unknown.length > 0) {
  console.error(`no view ${unknown.join(', ')}; there are: ${every.map((shot) => shot.name).join(', ')}`);
  await browser.close();
  process.exit(2);
}
const all = every.filter((shot) => wanted.length === 0 || wanted.includes(shot.name));
for (const scheme of ['light', 'dark']) {
  for (const width of [1280, 390]) {
    const size = { scheme, width, height: width < 800 ? 844 : 800, motion: 'reduce' };
    const plain = await newPage({ url, browser }, size);
    for (const { name, hash, before, after, only, window } of all) {
      if (only && only !== width) continue;
      const { page, close } = before || after ? await newPage({ url, browser }, size) : { page: plain.page, close: () => {} };
      await before?.(page);
      await open({ url }, page, hash);
      await after?.(page);
      if (name.startsWith('lost-cards')) await page.waitForSelector('[data-state=offline]');
      await page.waitForTimeout(150);
      await page.screenshot({ path: join(folder, `${name}-${scheme}-${width}.png`), fullPage: !window });
      made += 1;
      await close();
    }
    await plain.close();
  }
}
await browser.close();
console.log(`${made} pictures in ${folder}`);
