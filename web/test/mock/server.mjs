// A hub of made-up data for the dashboard's own tests. It serves web/dist with the Content-Security-Policy that must
// suffice, answers with ETags, and can be told to be empty, slow, wrong, broken or gone: POST /mock {"mode": …}.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { emptyFleet, makeFleet, makeRecord } from './data.mjs';

export const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const dist = fileURLToPath(new URL('../../dist', import.meta.url));

const without = (object, ...keys) => Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));

class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

function racesPage(fleet, query) {
  const known = ['card', 'silicon', 'program', 'machine', 'driver', 'backend', 'winner', 'since', 'until', 'before', 'limit'];
  for (const key of query.keys()) if (!known.includes(key)) throw new Refused(400, 'invalid', `unknown parameter '${key}'`);
  const limit = Number(query.get('limit') ?? 50);
  let races = fleet.races;
  for (const key of ['silicon', 'program', 'machine', 'driver', 'backend', 'winner']) {
    const value = query.get(key);
    if (value) races = races.filter((r) => r[key] === value);
  }
  const card = query.get('card');
  if (card) races = races.filter((r) => r.card === card || r.card.split('@')[0] === card);
  for (const key of ['since', 'until']) {
    const value = query.get(key);
    if (value && Number.isNaN(Date.parse(value))) throw new Refused(400, 'invalid', `${key}: '${value}' is no time; write 2026-03-01T12:00:00Z`);
  }
  if (query.get('since')) races = races.filter((r) => r.ts >= query.get('since'));
  if (query.get('until')) races = races.filter((r) => r.ts < query.get('until'));
  const before = query.get('before');
  if (before) races = races.filter((r) => r.id < before);
  const page = races.slice(0, limit);
  return { races: page, ...(races.length > limit ? { next: page[page.length - 1].id } : {}) };
}

function oneCard(fleet, key) {
  const card = fleet.cards.find((c) => [c.key, c.label, c.silicon.hash, ...c.aliases].includes(key));
  if (!card) throw new Refused(404, 'invalid', `no card '${key}'; the nearest is 'NVIDIA_H200'`);
  return card;
}

function oneRace(fleet, id) {
  const race = fleet.races.find((r) => r.id === id);
  if (!race) throw new Refused(404, 'invalid', `no race '${id}'`);
  const imported = race.id.endsWith('0');
  return {
    record: makeRecord(race, oneCard(fleet, race.card)),
    batch: { id: race.id.replace(/.$/, 'b'), machine: imported ? 'import:old-fleet' : race.machine, received: race.received, signed: !imported, records: 6, verified: !imported },
  };
}

function answer(fleet, path, query) {
  const [, , what, item] = path.split('/').map(decodeURIComponent);
  switch (what) {
    case 'summary': return fleet.summary;
    case 'cards':
      if (item) return oneCard(fleet, item);
      return { updated: fleet.summary.updated, window_days: 7, races: fleet.summary.races, cards: fleet.cards.map((c) => ({ ...c, rows: c.rows.map((r) => without(r, 'variants', 'set_aside', 'why')) })) };
    case 'races': return item ? oneRace(fleet, item) : racesPage(fleet, query);
    case 'machines': return { machines: fleet.machines };
    case 'regressions': return fleet.regressions;
    case 'rollout': return fleet.rollout;
    case 'knobs': {
      if (!item) return { programs: fleet.audit.programs };
      const editions = fleet.audit.reports[item];
      if (!editions) throw new Refused(404, 'invalid', `no program '${item}'`);
      return { program: item, editions };
    }
    case 'openapi.json': return { openapi: '3.1.0' };
    default: throw new Refused(404, 'invalid', `nothing is at ${path}`);
  }
}

function send(request, reply, status, type, body, headers = {}) {
  const etag = `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"`;
  const all = { 'Content-Type': type, ETag: etag, 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff', ...headers };
  if (status === 200 && request.headers['if-none-match'] === etag) reply.writeHead(304, all).end();
  else reply.writeHead(status, all).end(request.method === 'HEAD' ? undefined : body);
}

function json(request, reply, value, status = 200) {
  send(request, reply, status, 'application/json', JSON.stringify({ schema: 1, ...value }));
}

async function file(request, reply, path) {
  const name = normalize(path === '/' ? '/index.html' : path);
  try {
    const body = await readFile(join(dist, name));
    send(request, reply, 200, types[extname(name)] ?? 'application/octet-stream', body, { 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' });
  } catch {
    send(request, reply, 404, 'text/plain', 'not found');
  }
}

const broken = {
  error: (request, reply) => json(request, reply, { error: { code: 'unavailable', message: 'store: the database is locked' } }, 503),
  bad: (request, reply) => json(request, reply, { change: 'seven', cards: [{ key: 7 }], races: 'many', machines: {}, programs: 3, regressions: null, record: [], rows: 1, editions: {}, by_version: 5 }),
  other: (request, reply) => send(request, reply, 200, 'application/json', JSON.stringify({ schema: 2 })),
  html: (request, reply) => send(request, reply, 200, 'text/html', '<h1>Welcome to the hotel’s network</h1>'),
};

export async function startMock({ port = 0, ...options } = {}) {
  const full = makeFleet(options);
  const state = { mode: 'ok', only: '', delay_ms: 3000, fleet: full, asked: [] };

  const control = async (request, reply) => {
    let body = '';
    for await (const part of request) body += part;
    const { mode, only = '', delay_ms = 3000, bump, fleet } = JSON.parse(body || '{}');
    if (mode) Object.assign(state, { mode, only, delay_ms, fleet: mode === 'empty' ? emptyFleet() : full });
    if (fleet) state.fleet = { ...state.fleet, ...fleet };
    if (bump) {
      state.fleet.summary.change += 1;
      state.fleet.summary.races += 1;
    }
    const { asked } = state;
    state.asked = [];
    json(request, reply, { asked });
  };

  const server = createServer(async (request, reply) => {
    const url = new URL(request.url, 'http://mock');
    if (url.pathname === '/mock') return control(request, reply);
    if (state.mode === 'offline') return request.socket.destroy();
    if (!url.pathname.startsWith('/v1/')) return file(request, reply, url.pathname);
    state.asked.push(`${url.pathname}${url.search}`);
    const affected = !state.only || url.pathname.startsWith(state.only);
    if (affected && broken[state.mode]) return broken[state.mode](request, reply);
    if (affected && state.mode === 'slow') await new Promise((done) => setTimeout(done, state.delay_ms));
    try {
      return json(request, reply, answer(state.fleet, url.pathname, url.searchParams));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return json(request, reply, { error: { code: error.code, message: error.message } }, error.status);
    }
  });
  await new Promise((done) => server.listen(port, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    fleet: full,
    set: async (change) => (await (await fetch(`http://127.0.0.1:${server.address().port}/mock`, { method: 'POST', body: JSON.stringify(change) })).json()).asked,
    stop: () => new Promise((done) => { server.close(done); server.closeAllConnections(); }),
  };
}
