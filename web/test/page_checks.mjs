// Checks that run inside a page: names, landmarks, tables, headings, contrast, sizes. Each gives a list of sentences; empty is
// well. They know nothing of this dashboard.

export function semantics() {
  const found = [];
  const seen = (e) => e.checkVisibility({ visibilityProperty: true });
  const where = (e) => `<${e.tagName.toLowerCase()} class="${e.getAttribute('class') ?? ''}"> "${(e.textContent ?? '').trim().slice(0, 40)}"`;
  const name = (e) => {
    const by = e.getAttribute('aria-labelledby');
    if (by) return by.split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? '').join(' ').trim();
    const label = e.getAttribute('aria-label') ?? (e.labels?.length ? [...e.labels].map((l) => l.textContent).join(' ') : '');
    return (label || e.textContent || e.getAttribute('alt') || e.getAttribute('title') || '').trim();
  };
  if (!document.documentElement.lang) found.push('the page tells no language');
  if (!document.title.trim()) found.push('the page has no title');
  for (const [selector, n] of [['h1', 1], ['main', 1], ['header', 1], ['footer', 1]]) {
    const count = document.querySelectorAll(selector).length;
    if (count !== n) found.push(`${count} of ${selector}, not ${n}`);
  }
  for (const nav of document.querySelectorAll('nav, [role=search]')) if (!name(nav)) found.push(`no name: ${where(nav)}`);
  let level = 0;
  for (const h of document.querySelectorAll('h1, h2, h3, h4, h5')) {
    if (!seen(h)) continue;
    const now = Number(h.tagName[1]);
    if (now > level + 1) found.push(`from h${level} to ${where(h)}`);
    level = now;
  }
  for (const e of document.querySelectorAll('button, a[href], input, select, textarea, summary, [role=img], dialog')) {
    if (seen(e) && !name(e)) found.push(`no name: ${where(e)}`);
  }
  for (const a of document.querySelectorAll('a:not([href])')) found.push(`a link to nothing: ${where(a)}`);
  for (const img of document.images) if (!img.hasAttribute('alt')) found.push(`no alt: ${img.src}`);
  for (const svg of document.querySelectorAll('svg')) {
    if (svg.getAttribute('aria-hidden') !== 'true' && !(svg.getAttribute('role') === 'img' && name(svg))) found.push(`a picture without words: ${where(svg)}`);
  }
  for (const canvas of document.querySelectorAll('canvas')) {
    const figure = canvas.closest('figure');
    if (!canvas.closest('[role=img][aria-label]') || !figure?.querySelector('figcaption table')) found.push('a plot without its table');
  }
  for (const table of document.querySelectorAll('table')) {
    if (!table.caption?.textContent?.trim()) found.push(`a table without a caption: ${where(table)}`);
    for (const th of table.querySelectorAll('th')) if (!th.scope) found.push(`th without a scope: ${where(th)}`);
    const width = table.tHead?.rows[0]?.cells.length ?? 0;
    for (const row of table.tBodies[0]?.rows ?? []) if (row.cells.length !== width) found.push(`a row of ${row.cells.length} cells below ${width} heads`);
    for (const th of table.querySelectorAll('th[aria-sort]')) if (!th.querySelector('button')) found.push(`sorted without a button: ${where(th)}`);
  }
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push(`two of id ${id}`);
  for (const attribute of ['aria-labelledby', 'aria-controls', 'for']) {
    for (const e of document.querySelectorAll(`[${attribute}]`)) {
      for (const id of e.getAttribute(attribute).split(/\s+/)) if (!ids.includes(id)) found.push(`${attribute} names ${id}, which is not there`);
    }
  }
  for (const e of document.querySelectorAll('[tabindex]')) if (e.tabIndex > 0) found.push(`tabindex above 0: ${where(e)}`);
  if (!document.querySelector('[aria-live]')) found.push('no live region');
  return found;
}

export function contrast() {
  const parse = (text) => {
    const numbers = (text.match(/-?[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
    const scale = text.startsWith('color(') ? 255 : 1;
    return [numbers[0] * scale, numbers[1] * scale, numbers[2] * scale, numbers[3] ?? 1];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      layers.push(parse(getComputedStyle(e).backgroundColor));
      if (layers[layers.length - 1][3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const dimmed = (element) => {
    let opacity = 1;
    for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
    return opacity;
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    const style = e && getComputedStyle(e);
    if (!node.data.trim() || !e.checkVisibility({ visibilityProperty: true }) || e.closest('.hidden, [aria-hidden=true]:not(svg)')) continue;
    const back = ground(e);
    const ink = parse(e instanceof SVGElement ? style.fill : style.color);
    const seen = over([...ink.slice(0, 3), ink[3] * dimmed(e)], back);
    const px = parseFloat(style.fontSize);
    const large = px >= 24 || (px >= 18.66 && Number(style.fontWeight) >= 700);
    const has = ratio(seen, back);
    if (has < (large ? 3 : 4.5)) found.set(`${e.className?.baseVal ?? e.className}|${style.color}`, `${has.toFixed(2)}: <${e.tagName.toLowerCase()} class="${e.getAttribute('class') ?? ''}"> "${node.data.trim().slice(0, 30)}"`);
  }
  for (const e of document.querySelectorAll('button.button, input:not([type=checkbox]), select')) {
    if (!e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const has = ratio(parse(style.borderTopColor), ground(e.parentElement));
    if (has < 3 && ratio(parse(style.backgroundColor), ground(e.parentElement)) < 3) found.set(`edge ${e.className}`, `${has.toFixed(2)}: the edge of <${e.tagName.toLowerCase()} class="${e.className}">`);
  }
  return [...found.values()];
}

/** Controls are at least 24 by 24 px (links within text are not asked). */
export function sizes() {
  const found = [];
  for (const e of document.querySelectorAll('button, select, input, summary')) {
    const target = e.type === 'checkbox' ? e.closest('label') ?? e : e;
    const box = target.getBoundingClientRect();
    if (target.checkVisibility() && (box.height < 23.5 || box.width < 15)) found.push(`${Math.round(box.width)} × ${Math.round(box.height)} px: ${e.tagName} ${e.className} "${(e.textContent ?? '').slice(0, 20)}"`);
  }
  return [...new Set(found)];
}

/** What sticks out of a page that must not be scrolled sideways. */
export function sticksOut() {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const found = [];
  const scrolls = (e) => e.closest('.raw') || (e.closest('.table-scroll') && getComputedStyle(e.closest('.table-scroll')).overflowX !== 'visible');
  for (const e of document.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect();
    if (box.right > width + 1 && box.width > 0 && !(scrolls(e) && getComputedStyle(e).position !== 'absolute')) found.push(`to ${Math.round(box.right)} of ${width} px: <${e.tagName.toLowerCase()} class="${e.getAttribute('class') ?? ''}">`);
  }
  return found.slice(0, 5).concat(found.length ? [] : ['the page is wider than its window']);
}

/** What can be seen only by scrolling a table sideways, or by opening a list. */
export function cutOff() {
  const tables = [...document.querySelectorAll('.table-scroll')]
    .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
    .map((e) => `${e.scrollWidth} px in ${e.clientWidth} px: the table "${e.querySelector('caption')?.textContent}"`);
  const pen = document.createElement('canvas').getContext('2d');
  const lists = [...document.querySelectorAll('select')].filter((e) => {
    const { font, paddingLeft } = getComputedStyle(e);
    pen.font = font;
    // The arrow takes about 16 px.
    return e.checkVisibility() && pen.measureText(e.selectedOptions[0]?.text ?? '').width + parseFloat(paddingLeft) + 16 > e.clientWidth;
  }).map((e) => `a list that shows only part of "${e.selectedOptions[0]?.text}"`);
  return [...tables, ...lists];
}
