// What the dashboard shows when the hub is empty, slow, wrong or gone: the mock hub alone can be told to be.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { newPage, open, placesOf, real, settled, shoot, start } from './harness.mjs';
import { contrast, semantics, sticksOut } from './page_checks.mjs';

let world;
let places;
before(async () => {
  if (real) return;
  world = await start();
  places = await placesOf(world.url);
});
after(() => world?.stop());
afterEach(() => world?.mock.set({ mode: 'ok' }));

const network = [/Failed to load resource/];
const lists = ['home', 'cards', 'races', 'machines', 'rollout', 'regressions', 'knobs'];

async function clean(page, name) {
  for (const check of [semantics, contrast, sticksOut]) assert.deepEqual(await page.evaluate(check), [], `${check.name} of ${name}`);
}

describe('states', { skip: real && 'they take the mock hub' }, () => {
  it('an empty fleet: every list says what it lacks', async () => {
    await world.mock.set({ mode: 'empty' });
    for (const width of [1440, 360]) {
      const { page, complaints, close } = await newPage(world, { width });
      for (const view of lists) {
        await open(world, page, places[view]);
        assert.ok(await page.locator('main [data-state=empty]').count() > 0, view);
        assert.equal(await page.locator('main .mark.ok').count(), 0, `${view}: all is well with nothing`);
        await shoot(page, `empty-${view}-light-${width}`);
        await clean(page, view);
      }
      assert.deepEqual(complaints, []);
      await close();
    }
  });

  for (const [mode, words] of [['error', /store: the database is locked/], ['bad', /expected/], ['other', /schema: expected 1, found 2/], ['html', /not JSON/]]) {
    it(`${mode}: every view shows the error, and recovers by itself`, async () => {
      const { page, close } = await newPage(world, { allow: network });
      for (const [view, hash] of Object.entries(places)) {
        await world.mock.set({ mode, only: '/v1/' });
        await page.goto('about:blank');
        await page.goto(`${world.url}/${hash}`);
        await page.waitForSelector(view === 'home' ? 'main .note, main [data-state=error]' : 'main [data-state=error]');
        assert.match(await page.locator('body').innerText(), words, view);
        assert.equal(await page.locator('h1').count(), 1);
        await page.waitForSelector('[data-state=offline]');
        if (mode === 'error') {
          await clean(page, view);
          if (view === 'cards') await shoot(page, 'error-cards-light-1440');
        }
        await world.mock.set({ mode: 'ok' });
        await page.waitForFunction(() => !document.querySelector('[data-state=error], [data-state=offline], main .note.warn'));
      }
      await close();
    });
  }

  it('an error of one answer alone leaves the rest, keeps old figures, and is tried again', async () => {
    const { page, close } = await newPage(world, { allow: network });
    await open(world, page, '#/cards');
    await world.mock.set({ mode: 'error', only: '/v1/cards', bump: true });
    await page.waitForSelector('[data-state=stale]');
    assert.ok(await page.locator('tbody tr').count() > 3);
    assert.equal(await page.locator('[data-state=offline]').count(), 0);
    await shoot(page, 'stale-cards-light-1440');
    await world.mock.set({ mode: 'ok' });
    await page.waitForFunction(() => !document.querySelector('[data-state=stale]'));
    await close();
  });

  it('machines without an answer of the rollout: who is behind is unknown, not nobody, and the error is shown', async () => {
    for (const [show, width] of [['active', 1440], ['behind', 360]]) {
      await world.mock.set({ mode: 'error', only: '/v1/rollout' });
      const { page, close } = await newPage(world, { allow: network, width });
      await open(world, page, `#/machines?show=${show}`);
      await page.waitForSelector('main .note.warn');
      assert.match(await page.locator('main .note.warn').innerText(), /the database is locked/);
      assert.match(await page.locator('main .lead').innerText(), /unknown how many are behind/);
      assert.doesNotMatch(await page.locator('main').innerText(), /\b0 behind|behind the rollout \(0\)|No machine fits/);
      await clean(page, 'machines');
      await world.mock.set({ mode: 'ok' });
      await page.waitForFunction(() => !document.querySelector('main .note.warn'));
      assert.match(await page.locator('main .lead').innerText(), /[1-9]\d* behind the manifest that is served/);
      assert.ok(await page.locator('table', { hasText: 'Last batch' }).locator('tbody tr').count() > 0);
      await close();
    }
  });

  it('machines while the rollout is slow: who is behind is unknown, and none is listed as if it were known', async () => {
    await world.mock.set({ mode: 'slow', only: '/v1/rollout', delay_ms: 4000 });
    const { page, close } = await newPage(world);
    await open(world, page, '#/machines?show=behind');
    assert.match(await page.locator('main .lead').innerText(), /unknown how many are behind/);
    assert.doesNotMatch(await page.locator('main').innerText(), /No machine fits/);
    await page.waitForFunction(() => /[1-9]\d* behind/.test(document.querySelector('main .lead').textContent));
    await close();
  });

  it('the overview gives no all-clear while any of its answers is an error, also beside old figures', async () => {
    const { machines, rollout } = world.mock.fleet;
    const calm = {
      machines: machines.map((m) => ({ ...m, refused: 0, seen: new Date().toISOString() })),
      rollout: { ...rollout, stragglers: [] },
      regressions: { ...world.mock.fleet.regressions, regressions: [] },
    };
    for (const path of ['/v1/regressions', '/v1/rollout', '/v1/machines']) {
      await world.mock.set({ mode: 'ok', fleet: calm });
      const { page, close } = await newPage(world, { allow: network });
      await open(world, page, '#/');
      await page.getByText('Nothing: no regression, nobody behind, no stop.').waitFor();
      await world.mock.set({ mode: 'error', only: path, fleet: calm, bump: true });
      await page.waitForSelector('main .note.warn');
      assert.match(await page.locator('main .note.warn').innerText(), /the database is locked/);
      assert.equal(await page.getByText('Nothing: no regression').count(), 0, path);
      assert.equal(await page.locator('[data-state=offline]').count(), 0);
      await clean(page, `home without ${path}`);
      await world.mock.set({ mode: 'ok', fleet: calm });
      await page.getByText('Nothing: no regression, nobody behind, no stop.').waitFor();
      assert.equal(await page.locator('main .note.warn').count(), 0);
      await close();
    }
  });

  it('of two back ends the row that the tuning takes is marked, and a higher gain of few machines does not lead', async () => {
    const fleet = JSON.parse(JSON.stringify(world.mock.fleet));
    const card = fleet.cards[0];
    const first = card.rows[0];
    const lone = { ...first.variants.find((v) => v.name !== 'base'), name: 'lone', gain_pct: 900, ci: [850, 950], machines: 2, standing_pct: 0 };
    first.variants = [lone, ...first.variants.map((v, i) => ({ ...v, standing_pct: v.gain_pct === undefined ? undefined : v.name === 'base' ? 0 : Number((v.gain_pct - i / 100).toFixed(2)) }))];
    first.leads = true;
    card.rows.push({ ...first, backend: 'opencl', leads: false });
    await world.mock.set({ mode: 'ok', fleet: { cards: fleet.cards } });
    const { page, complaints, close } = await newPage(world);
    await open(world, page, '#/cards?q=5090&program=lottery');
    const marked = async (words) => page.locator('main tbody tr', { hasText: words }).count();
    assert.equal(await marked('not used'), 1);
    assert.equal(await page.locator('main tbody tr', { hasText: 'not used' }).locator('[data-label="Back end"]').innerText().then((t) => /opencl/.test(t)), true);
    assert.match(await page.locator('main .lead').innerText(), /program, class, back end/);
    await open(world, page, `#/cards/${encodeURIComponent(card.key)}`);
    const variants = page.locator('table', { hasText: 'Standing' }).locator('tbody tr');
    assert.notEqual(await variants.first().locator('th .variant').innerText(), 'lone');
    assert.match(await variants.filter({ hasText: 'lone' }).innerText(), /\+900%/);
    assert.equal((await variants.filter({ hasText: 'lone' }).locator('[data-label=Standing]').innerText()).trim(), '0.00%');
    assert.match(await page.locator('main').innerText(), /used/);
    await clean(page, 'card');
    await open(world, page, `#/cards/${encodeURIComponent(card.key)}?program=${first.program}&class=${encodeURIComponent('loads=128, wide=0')}&backend=opencl`);
    assert.match(await page.locator('.verdict').innerText(), /The tuning takes the row of another back end/);
    assert.deepEqual(complaints, []);
    await close();
  });

  it('a hub that tells neither leads nor standing: nothing is marked, no column stands empty', async () => {
    const { page, close } = await newPage(world);
    await open(world, page, places.card);
    assert.equal(await page.getByRole('button', { name: 'Standing' }).count(), 0);
    assert.doesNotMatch(await page.locator('main').innerText(), /not used|another back end/);
    await close();
  });

  it('wins are a number of their own, and of many defects six are shown at first', async () => {
    const fleet = JSON.parse(JSON.stringify(world.mock.fleet));
    fleet.cards[0].rows[0].variants[0].won = 9876;
    const [program] = fleet.audit.programs;
    fleet.audit.reports[program.program][0].report.defects = Array.from({ length: 40 }, (_, i) => `defect ${i} of forty`);
    Object.assign(fleet.audit.reports[program.program][0].report.records, { given: 100, used: 60, other_source: 39, other_language: 1, repeated: 0 });
    await world.mock.set({ mode: 'ok', fleet });
    const { page, complaints, close } = await newPage(world);
    await open(world, page, `#/cards/${encodeURIComponent(fleet.cards[0].key)}`);
    assert.equal(await page.getByText('9,876', { exact: true }).count(), 1);
    await open(world, page, `#/knobs/${program.program}`);
    const seen = () => page.getByText(/^defect \d+ of forty$/).evaluateAll((all) => all.filter((e) => e.checkVisibility()).length);
    assert.equal(await seen(), 6);
    await page.getByText('34 more').click();
    assert.equal(await seen(), 40);
    assert.match(await page.locator('main').innerText(), /39 of another text of the program, 1 of another language/);
    assert.deepEqual(complaints, []);
    await close();
  });

  it('a manifest that is offered to some: the overview says so beside who is behind', async () => {
    const { rollout } = world.mock.fleet;
    for (const [percent, words] of [[30, /served, which is offered to 30% and the canaries/], [100, /served$/m]]) {
      await world.mock.set({ mode: 'ok', fleet: { rollout: { ...rollout, manifest: { ...rollout.manifest, percent } } } });
      const { page, close } = await newPage(world);
      await open(world, page, '#/');
      assert.match(await page.locator('.concerns').innerText(), words);
      await close();
    }
  });

  it('slow: says that it waits, then that the hub is slow, then shows the figures', async () => {
    await world.mock.set({ mode: 'slow', only: '/v1/machines', delay_ms: 15_000 });
    const { page, complaints, close } = await newPage(world);
    await page.goto(`${world.url}/#/machines`);
    await page.waitForSelector('[data-state=loading]');
    assert.match(await page.locator('[data-state=loading]').innerText(), /Loading machines/);
    await page.getByText(/slow to answer/).waitFor();
    await shoot(page, 'slow-machines-light-1440');
    await page.waitForSelector('tbody tr');
    assert.deepEqual(complaints, []);
    await close();
  });

  it('the hub goes away and comes back: said, shown with its age, and mended without a reload', async () => {
    const { page, close } = await newPage(world, { allow: network });
    await open(world, page, '#/cards');
    await page.evaluate(() => { window.kept = true; });
    await world.mock.set({ mode: 'offline' });
    await page.waitForSelector('[data-state=offline]');
    assert.match(await page.locator('.live').innerText(), /Lost/);
    assert.match(await page.locator('[data-state=offline]').innerText(), /does not answer/);
    assert.match(await page.locator('#said').innerText(), /does not answer/);
    assert.ok(await page.locator('tbody tr').count() > 3, 'the last figures stay');
    await page.waitForTimeout(2500);
    assert.match(await page.locator('.live .age').innerText(), /\d+ s ago/);
    await shoot(page, 'offline-cards-light-1440');
    await clean(page, 'offline');
    await page.getByRole('link', { name: 'Rollout', exact: true }).click();
    await page.waitForSelector('[data-state=error]');
    await world.mock.set({ mode: 'ok', bump: true });
    await page.waitForFunction(() => !document.querySelector('[data-state=offline]'));
    await page.waitForSelector('#served');
    assert.match(await page.locator('#said').innerText(), /answers again/);
    assert.equal(await page.evaluate(() => window.kept), true);
    await close();
  });

  it('a change is fetched, what did not change is answered 304, and a pause asks for nothing', async () => {
    const { page, complaints, close } = await newPage(world);
    await open(world, page, '#/regressions');
    const answers = [];
    page.on('response', (r) => answers.push(`${r.status()} ${new URL(r.url()).pathname}`));
    const until = async (...wanted) => {
      for (let i = 0; i < 150 && !wanted.every((w) => answers.includes(w)); i += 1) await page.waitForTimeout(200);
      assert.ok(wanted.every((w) => answers.includes(w)), answers.join(', '));
    };
    await until('304 /v1/summary');
    assert.deepEqual([...new Set(answers)], ['304 /v1/summary']);
    answers.length = 0;
    await world.mock.set({ bump: true });
    await until('200 /v1/summary', '304 /v1/regressions');
    await page.keyboard.press('p');
    assert.match(await page.locator('.live').innerText(), /Paused/);
    answers.length = 0;
    await page.waitForTimeout(5000);
    assert.deepEqual(answers, []);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.waitForFunction(() => document.querySelector('.live.good'));
    assert.deepEqual(complaints, []);
    await close();
  });

  it('what machines say is text, never markup', async () => {
    const evil = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>' + 'x'.repeat(150);
    const fleet = JSON.parse(JSON.stringify(world.mock.fleet));
    fleet.cards[0].key = evil;
    fleet.cards[0].rows.forEach((r) => Object.assign(r, { why: evil, variant: evil, set_aside: [{ machine: evil, reason: evil, why: evil, races: 1 }] }));
    fleet.machines[0] = { ...fleet.machines[0], label: evil, last_refusal: evil, seen: evil };
    fleet.races.forEach((r) => Object.assign(r, { winner: evil, driver: evil }));
    await world.mock.set({ mode: 'ok', fleet });
    const { page, complaints, close } = await newPage(world, { width: 360 });
    for (const hash of ['#/', '#/cards', `#/cards/${encodeURIComponent(evil)}`, '#/machines', '#/races']) {
      await open(world, page, hash);
      assert.deepEqual(await page.evaluate(sticksOut), [], hash);
      assert.equal(await page.evaluate(() => window.hit ?? document.querySelectorAll('main img, main script').length), 0, hash);
      assert.match(await page.locator('main').innerText(), /onerror/, hash);
    }
    assert.deepEqual(complaints, []);
    await close();
  });

  it('a stop, an expired manifest and a file that cannot be served are said loudly', async () => {
    const { rollout } = world.mock.fleet;
    await world.mock.set({ mode: 'ok', fleet: { rollout: { ...rollout, manifest: { ...rollout.manifest, expired: true }, stop: { version: 2, from: 7, issued: '2026-03-02T08:00:00Z' }, problem: 'signed by an unknown key' } } });
    const { page, complaints, close } = await newPage(world);
    await open(world, page, '#/rollout');
    const text = await page.locator('main').innerText();
    for (const words of [/Stop 2 holds/, /expired/, /signed by an unknown key/]) assert.match(text, words);
    await shoot(page, 'stop-rollout-light-1440');
    await clean(page, 'rollout');
    await open(world, page, '#/');
    assert.match(await page.locator('.concerns').innerText(), /Stop 2 holds/);
    assert.deepEqual(complaints, []);
    await close();
  });

  it('canaries wait for the first manifest, and nobody says that there are none', async () => {
    const { rollout } = world.mock.fleet;
    const none = { machines: rollout.machines, stragglers: [], canaries: { machines: 0, races: 0, regressions: 0 } };
    for (const [canaries, words] of [[3, /3 machines are canaries/], [1, /1 machine is a canary/], [0, /No machine is a canary/]]) {
      await world.mock.set({ mode: 'ok', fleet: { rollout: { ...none, by_version: [{ manifest: 'none', machines: 30, canaries }] } } });
      const { page, close } = await newPage(world);
      await open(world, page, '#/rollout');
      assert.match(await page.locator('main').innerText(), words);
      await close();
    }
  });

  it('a thousand machines: a hundred rows at first, all when asked, sorted and filtered', async () => {
    const { makeFleet } = await import('./mock/data.mjs');
    const big = makeFleet({ machines: 1000, seed: 2 });
    await world.mock.set({ mode: 'ok', fleet: { machines: big.machines, rollout: big.rollout } });
    const { page, complaints, close } = await newPage(world);
    await open(world, page, '#/machines?show=all');
    const rows = page.locator('table', { hasText: 'Last batch' }).locator('tbody tr');
    assert.equal(await rows.count(), 100);
    await page.getByRole('button', { name: 'Show all' }).click();
    assert.equal(await rows.count(), 1000);
    await page.getByRole('button', { name: 'Refused' }).click();
    const refused = await rows.first().locator('td[data-label=Refused]').innerText();
    assert.match(refused, /\d/);
    await page.getByRole('searchbox').fill('rack1-');
    await page.waitForFunction(() => /^8 of/.test(document.querySelector('.found').textContent));
    assert.deepEqual(complaints, []);
    await close();
  });
});
