// The dashboard in a browser: `node test/browser.test.mjs`. FURLONG_HUB_URL: a hub to look at instead of the mock one;
// FURLONG_SHOTS: a folder for pictures of every view; FURLONG_CHROMIUM: the browser.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { getJson, newPage, open, placesOf, real, settled, shoot, start } from './harness.mjs';
import { contrast, cutOff, semantics, sizes, sticksOut } from './page_checks.mjs';

let world;
let places;
before(async () => {
  world = await start();
  places = await placesOf(world.url);
});
after(() => world?.stop());

const active = (page) => page.evaluate(() => {
  const e = document.activeElement;
  return { tag: e?.tagName ?? '', text: (e?.getAttribute('aria-label') ?? e?.textContent ?? '').trim(), id: e?.id ?? '', filter: e?.hasAttribute('data-filter') ?? false };
});

/** All that is wrong with any of the views, each with its name. */
/** What follows a key comes with the next drawing, on a busy machine a while later. */
async function becomes(look, wanted) {
  const end = Date.now() + 30_000;
  let seen = await look();
  while (Date.now() < end && JSON.stringify(seen) !== JSON.stringify(wanted)) {
    await new Promise((resolve) => { setTimeout(resolve, 20); });
    seen = await look();
  }
  assert.deepEqual(seen, wanted);
}

async function lookAtAll(options) {
  const { page, complaints, close } = await newPage(world, options);
  const wrong = [];
  for (const [view, hash] of Object.entries(places)) {
    await open(world, page, hash);
    await page.waitForTimeout(50);
    await shoot(page, `${view}-${options.scheme}-${options.width}`);
    for (const check of [semantics, contrast, sizes, sticksOut, cutOff]) {
      wrong.push(...(await page.evaluate(check)).map((sentence) => `${view}: ${check.name}: ${sentence}`));
    }
    const heading = (await page.locator('h1').textContent()).trim();
    const title = await page.title();
    if (title !== (view === 'home' ? 'Furlong' : `${heading} · Furlong`)) wrong.push(`${view}: the title '${title}' is not that of '${heading}'`);
    if (await page.locator('main [data-state=error]').count()) wrong.push(`${view}: an error is shown`);
    wrong.push(...complaints.splice(0).map((sentence) => `${view}: ${sentence}`));
  }
  await close();
  return wrong;
}

describe('every view', () => {
  for (const scheme of ['light', 'dark']) {
    for (const width of [1440, 1280, 768, 360]) {
      it(`${scheme}, ${width} px: opens without complaint, has names, contrast and room`, async () => {
        assert.deepEqual(await lookAtAll({ scheme, width }), []);
      });
    }
  }

  it('is served with a policy that forbids inline scripts and other hosts', async () => {
    const reply = await fetch(`${world.url}/`);
    const policy = reply.headers.get('Content-Security-Policy') ?? '';
    assert.match(policy, /default-src '(none|self)'/);
    assert.doesNotMatch(policy, /unsafe|\*|http|data:/);
    const page = await reply.text();
    assert.doesNotMatch(page, /<style|style=|<script>|\son[a-z]+=|https?:/);
  });

  it('details can be opened without complaint: the plot’s table, the record, regimes', async () => {
    for (const view of ['card', 'race', 'knobs-of-a-program'].filter((v) => places[v])) {
      const { page, complaints, close } = await newPage(world, { width: 360 });
      await open(world, page, places[view]);
      for (const summary of await page.locator('main summary').all()) await summary.click();
      for (const check of [semantics, contrast, sticksOut, cutOff]) assert.deepEqual(await page.evaluate(check), [], `${check.name} of ${view}`);
      assert.deepEqual(complaints, []);
      await close();
    }
  });

  it('every choice of a list can be read in it', async () => {
    for (const width of [1280, 360]) {
      const { page, close } = await newPage(world, { width });
      for (const [hash, show] of [['#/machines', 'behind'], ['#/machines', 'refused'], ['#/cards', '']]) {
        await open(world, page, `${hash}?show=${show}`);
        assert.ok(await page.locator('select').count() > 0);
        assert.deepEqual(await page.evaluate(cutOff), [], `${hash} ${show} at ${width} px`);
      }
      await close();
    }
  });

  it('the names of a plot’s lines stand beside it, not in it', async () => {
    const { page, close } = await newPage(world);
    await page.addInitScript(() => {
      window.texts = [];
      const write = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {
        const width = this.measureText(text).width;
        window.texts.push({ text, left: this.textAlign === 'center' ? x - width / 2 : this.textAlign === 'right' ? x - width : x, room: this.canvas.width - 104 * devicePixelRatio });
        return write.call(this, text, x, ...rest);
      };
    });
    // A card whose first row has several days: the first one of all that has.
    const { cards } = await getJson(world.url, 'v1/cards');
    let names = [];
    for (const { key } of cards) {
      await open(world, page, `#/cards/${encodeURIComponent(key)}`);
      if (await page.locator('.plot .canvas').count() === 0) continue;
      await page.waitForSelector('.plot canvas');
      const picked = await page.locator('.plot .canvas').getAttribute('aria-label').then((t) => t.match(/, of (.*)\. The same/)[1].split(', '));
      names = await page.evaluate((of) => window.texts.filter((t) => of.includes(t.text)), picked);
      break;
    }
    assert.ok(names.length > 0, 'no card has a plot');
    for (const { text, left, room } of names) assert.ok(left >= room, `${text} begins at ${left}, the plot ends at ${room}`);
    await close();
  });

  it('an address with words that every object has breaks nothing', async () => {
    const { page, complaints, close } = await newPage(world);
    const keys = ['show', 'sort', 'q', 'program', 'class', 'backend', 'metric', 'language'];
    for (const word of ['constructor', '__proto__', 'toString']) {
      for (const view of Object.keys(places).filter((v) => v !== 'races')) {
        for (const key of keys) {
          await page.evaluate((hash) => { location.hash = hash; }, `${places[view]}?${key}=${word}`).catch(() => {});
          if (!page.url().startsWith(world.url)) await open(world, page, `${places[view]}?${key}=${word}`);
          await settled(page);
          assert.equal(await page.locator('[data-state=error]').count(), 0, `${view}: ${key}=${word}`);
        }
      }
    }
    assert.deepEqual(complaints, []);
    await close();
  });

  it('the title follows the heading: a card by the hash of its silicon is named', async () => {
    const { page, close } = await newPage(world);
    const { cards } = await getJson(world.url, 'v1/cards');
    const card = cards.find((c) => c.silicon?.hash);
    await open(world, page, `#/cards/${card.silicon.hash}`);
    const heading = (await page.locator('h1').textContent()).trim();
    assert.equal(heading, card.key.replaceAll('_', ' '));
    assert.equal(await page.title(), `${heading} · Furlong`);
    await close();
  });

  it('an address that names nothing says so', async () => {
    const { page, close } = await newPage(world);
    await open(world, page, '#/nothing/here');
    assert.match(await page.locator('h1').innerText(), /No such page/);
    await close();
  });

  it('a card and a race that are not there say so', async () => {
    const { page, close } = await newPage(world);
    await open(world, page, '#/cards/no_such_card');
    await page.waitForSelector('[data-state=gone]');
    await open(world, page, '#/races/01956a3c-8f00-7abc-8def-0123456789ab');
    await page.waitForSelector('[data-state=gone]');
    await close();
  });
});

describe('keyboard', () => {
  it('the skip link comes first, is seen, and leads to the content', async () => {
    const { page, close } = await newPage(world);
    await open(world, page, '#/cards');
    await page.keyboard.press('Tab');
    assert.match((await active(page)).text, /Skip/);
    assert.ok((await page.locator('.skip').boundingBox()).y >= 0);
    await page.keyboard.press('Enter');
    await becomes(async () => (await active(page)).id, 'main');
    assert.equal(new URL(page.url()).hash, '#/cards');
    await close();
  });

  it('Tab goes through every view to its end, each stop visible: no traps', async () => {
    for (const view of Object.keys(places)) {
      const { page, close } = await newPage(world);
      await open(world, page, places[view]);
      const stops = await page.evaluate(() => [...document.querySelectorAll('a[href], button, input, select, summary, pre[tabindex]')].filter((e) => e.checkVisibility() && !e.disabled).length);
      const passed = new Set();
      for (let i = 0; i < stops + 3; i += 1) {
        await page.keyboard.press('Tab');
        const stop = await page.evaluate(() => {
          const e = document.activeElement;
          if (!e || e === document.body) return 'end';
          const style = getComputedStyle(e);
          if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 1) return `unseen: ${e.outerHTML.slice(0, 80)}`;
          window.stops ??= [];
          if (!window.stops.includes(e)) window.stops.push(e);
          return String(window.stops.indexOf(e));
        });
        assert.doesNotMatch(stop, /unseen/, view);
        if (stop === 'end' || (passed.has(stop) && stop === '0')) break;
        assert.ok(!passed.has(stop), `${view}: the same stop twice before the end`);
        passed.add(stop);
      }
      assert.ok(passed.size >= stops - 1, `${view}: ${passed.size} of ${stops} stops`);
      await close();
    }
  });

  it('heads of tables sort, and say how', async () => {
    const { page, close } = await newPage(world);
    await open(world, page, '#/cards');
    const head = page.locator('th', { has: page.locator('button', { hasText: 'Card' }) });
    await head.locator('button').focus();
    await page.keyboard.press('Enter');
    assert.equal(await head.getAttribute('aria-sort'), 'ascending');
    // A table shows 100 rows at first, and those of the other end are others.
    const whole = page.getByRole('button', { name: 'Show all' });
    if (await whole.count()) await whole.click();
    await head.locator('button').focus();
    const names = async () => (await page.locator('tbody th a').allInnerTexts()).map((n) => n.toLowerCase());
    const up = await names();
    const { cards } = await getJson(world.url, 'v1/cards');
    assert.equal(up.length, cards.flatMap((c) => c.rows).length);
    assert.ok(new Set(up).size > 1, 'cards of one name alone show no order');
    await page.keyboard.press('Space');
    assert.equal(await head.getAttribute('aria-sort'), 'descending');
    assert.deepEqual(await names(), [...up].reverse());
    assert.match(await page.locator('#said').innerText(), /Sorted by Card, descending/);
    assert.match(page.url(), /sort=-card/);
    await page.reload();
    await settled(page);
    assert.equal(await head.getAttribute('aria-sort'), 'descending');
    await close();
  });

  it('the button that pauses says what it does next, and nothing that contradicts it', async () => {
    const { page, close } = await newPage(world);
    await open(world, page, '#/cards');
    const button = page.locator('.live button');
    for (const [now, next, words] of [['Pause', 'Resume', /Paused/], ['Resume', 'Pause', /Live/]]) {
      assert.equal((await button.innerText()).trim(), now);
      await button.focus();
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: next, exact: true }).waitFor();
      await page.waitForFunction((text) => new RegExp(text).test(document.querySelector('.live').textContent), words.source);
      // Pressed is a state of a button whose name stays.
      assert.equal(await button.getAttribute('aria-pressed'), null);
    }
    await close();
  });

  it('? lists the keys, Escape closes it, the focus comes back', async () => {
    const { page, complaints, close } = await newPage(world);
    await open(world, page, '#/cards');
    await page.locator('tbody a').first().focus();
    const before = await active(page);
    await page.keyboard.press('?');
    await becomes(() => page.locator('dialog[open]').count(), 1);
    await shoot(page, 'help-light-1440');
    assert.deepEqual(await page.evaluate(contrast), []);
    for (let i = 0; i < 6; i += 1) await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement === document.body || Boolean(document.activeElement?.closest('dialog'))), true);
    await page.keyboard.press('Escape');
    await becomes(() => page.locator('dialog').count(), 0);
    await becomes(() => active(page), before);
    assert.deepEqual(complaints, []);
    await close();
  });

  it('/ goes to the filter, which narrows the table; Escape empties and leaves it', async () => {
    const { page, close } = await newPage(world);
    await open(world, page, '#/machines');
    const all = await page.locator('.found').innerText();
    await page.keyboard.press('/');
    await becomes(async () => (await active(page)).filter, true);
    await page.keyboard.type('no machine has this');
    await page.waitForSelector('[data-state=empty]');
    assert.match(page.url(), /q=no\+machine/);
    await page.keyboard.press('Escape');
    await page.waitForSelector('tbody tr');
    assert.equal(await page.locator('.found').innerText(), all);
    await becomes(async () => (await active(page)).filter, false);
    await close();
  });

  it('g and a letter change the view; heading and title follow; single keys can be turned off', async () => {
    const { page, close } = await newPage(world);
    await open(world, page, '#/');
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.waitForFunction(() => location.hash === '#/races');
    await settled(page);
    await becomes(async () => (await active(page)).text, 'Races');
    assert.match(await page.title(), /Races · Furlong/);
    await page.keyboard.press('?');
    await page.getByLabel('Single keys are on').uncheck();
    await page.keyboard.press('Escape');
    await page.keyboard.press('g');
    await page.keyboard.press('m');
    assert.equal(new URL(page.url()).hash, '#/races');
    await page.reload();
    await settled(page);
    await page.keyboard.press('?');
    await becomes(() => page.locator('dialog').count(), 0);
    await close();
  });

  it('the menu of a narrow screen opens and closes', async () => {
    const { page, close } = await newPage(world, { width: 360 });
    await open(world, page, '#/');
    const menu = page.getByRole('button', { name: /Menu/ });
    assert.equal(await menu.getAttribute('aria-expanded'), 'false');
    await menu.focus();
    await page.keyboard.press('Enter');
    assert.equal(await menu.getAttribute('aria-expanded'), 'true');
    const [list, button, views] = [await page.locator('#views').boundingBox(), await menu.boundingBox(), page.getByRole('navigation', { name: 'Views' })];
    assert.ok(list.y >= button.y + button.height && list.width > 300, 'the list has a row of its own');
    assert.equal(await views.getByRole('link').count(), 7);
    await page.getByRole('link', { name: 'Rollout', exact: true }).click();
    await settled(page);
    assert.equal(await page.locator('h1').innerText(), 'Rollout');
    assert.equal(await menu.getAttribute('aria-expanded'), 'false');
    await close();
  });
});

describe('settings', () => {
  it('the theme is the system’s until it is chosen, then remembered', async () => {
    const { page, complaints, close } = await newPage(world, { scheme: 'dark' });
    const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    await open(world, page, '#/');
    const dark = await ground();
    await page.locator('[data-theme-switch]').click();
    const light = await ground();
    assert.notEqual(light, dark);
    await page.reload();
    await settled(page);
    assert.equal(await ground(), light);
    assert.deepEqual(await page.evaluate(contrast), []);
    await page.locator('[data-theme-switch]').click();
    await page.locator('[data-theme-switch]').click();
    assert.equal(await page.evaluate(() => localStorage.getItem('furlong.theme')), null);
    assert.equal(await ground(), dark);
    assert.deepEqual(complaints, []);
    await close();
  });

  it('who wants less motion gets none', async () => {
    const { page, close } = await newPage(world, { motion: 'reduce' });
    await open(world, page, '#/');
    const moving = await page.evaluate(() => {
      const spinner = document.createElement('span');
      spinner.className = 'spinner';
      document.querySelector('main').append(spinner);
      return [...document.querySelectorAll('*')].filter((e) => getComputedStyle(e).animationName !== 'none' || parseFloat(getComputedStyle(e).transitionDuration) > 0).length;
    });
    assert.equal(moving, 0);
    await close();
  });
});

describe('races', () => {
  it('pages go to older ones and back', async (t) => {
    const { next } = await getJson(world.url, 'v1/races?limit=50');
    if (real && !next) return t.skip('this hub has one page only');
    const { page, complaints, close } = await newPage(world);
    await open(world, page, '#/races');
    const first = await page.locator('tbody th a').first().getAttribute('href');
    await page.getByRole('link', { name: 'Older' }).click();
    await page.waitForFunction((href) => document.querySelector('tbody th a') && document.querySelector('tbody th a').getAttribute('href') !== href, first);
    await page.goBack();
    await settled(page);
    assert.equal(await page.locator('tbody th a').first().getAttribute('href'), first);
    assert.deepEqual(complaints, []);
    await close();
  });

  it('the filter is asked of the hub, and stands in the address', async () => {
    const { page, close } = await newPage(world);
    await open(world, page, '#/races');
    await page.keyboard.press('/');
    await page.keyboard.type('no_such_card');
    await page.keyboard.press('Enter');
    await page.waitForSelector('[data-state=empty]');
    assert.match(page.url(), /card=no_such_card/);
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.waitForSelector('tbody tr');
    await close();
  });

  it('a race shows its evidence, its record and copies its link', async () => {
    const { page, close } = await newPage(world);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: world.url });
    await open(world, page, places.race);
    assert.match(await page.locator('main').innerText(), /Signature|Imported/);
    await page.getByText('The record as the machine wrote it').click();
    assert.equal(JSON.parse(await page.locator('pre.raw').innerText()).schema, 1);
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());
    await close();
  });
});
