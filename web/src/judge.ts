// What a row or race says, in words, so that no colour has to.

import type { Interval } from './api/check';
import type { RaceLine } from './api/shapes';
import { undecided } from './format';
import { own } from './own';

/** ok and fault are of states, good and bad of speeds. */
export type Tone = 'good' | 'bad' | 'even' | 'none' | 'warn' | 'ok' | 'fault';
export interface Judgement {
  tone: Tone;
  words: string;
}

interface Gained {
  gain_pct?: number;
  ci?: Interval;
}

export function ofRow(row: Gained & { variant: string }): Judgement {
  if (!row.variant) return { tone: 'none', words: 'too few samples' };
  if (row.variant === 'base') return { tone: 'even', words: 'base stands' };
  if (undecided(row.ci)) return { tone: 'even', words: 'dead heat' };
  if (!row.ci) return { tone: 'none', words: 'no interval yet' };
  return (row.gain_pct ?? 0) > 0 ? { tone: 'good', words: 'faster' } : { tone: 'bad', words: 'slower' };
}

export function ofVariant(variant: Gained & { name: string }): Judgement {
  if (variant.name === 'base') return { tone: 'none', words: 'the measure' };
  if (variant.gain_pct === undefined) return { tone: 'none', words: 'not timed' };
  if (undecided(variant.ci)) return { tone: 'even', words: 'dead heat with base' };
  if (!variant.ci) return { tone: 'none', words: 'no interval yet' };
  return variant.gain_pct > 0 ? { tone: 'good', words: 'faster' } : { tone: 'bad', words: 'slower' };
}

const verdicts: Record<string, Judgement> = {
  winner: { tone: 'good', words: 'winner' },
  'dead-heat': { tone: 'even', words: 'dead heat' },
  'out-of-budget': { tone: 'warn', words: 'out of budget' },
  pinned: { tone: 'none', words: 'pinned' },
  classic: { tone: 'none', words: 'classic' },
  none: { tone: 'warn', words: 'no winner' },
};

export function ofVerdict(race: Pick<RaceLine, 'verdict' | 'winner'>): Judgement {
  const known = own(verdicts, race.verdict) ?? { tone: 'none' as const, words: race.verdict || 'unknown' };
  return race.verdict === 'winner' && race.winner === 'base' ? { tone: 'even', words: 'base stands' } : known;
}

const choices: Record<string, string> = {
  race: 'races',
  'pinned-by-operator': 'pinned by operator',
  'pinned-by-stability': 'pinned, stable',
  none: 'none',
};

const exits: Record<string, string> = {
  stayed: 'timed to the end',
  compile: 'did not compile',
  trial: 'failed its trial',
  gate: 'wrong result (gate)',
  launch: 'could not be launched',
  quarantined: 'quarantined after a fault',
  eliminated: 'timed, cannot win',
  duplicate: 'same machine code as another',
  budget: 'had no turn',
  other: 'left',
};

const asides: Record<string, string> = {
  'above-ceiling': 'above the ceiling',
  'base-disagrees': 'base disagrees with its peers',
  'same-card': 'one card, two machines',
  fallback: 'another kernel ran',
  'no-base': 'base was not timed',
  'no-power': 'base’s draw was not measured',
  flood: 'too many races of one machine',
  name: 'a name that no manifest carries',
};

/** Words of a newer hub are shown as they are. */
export const choiceText = (choice: string): string => own(choices, choice) ?? choice;
export const exitText = (exit: string): string => own(exits, exit || 'stayed') ?? exit;
export const asideText = (reason: string): string => own(asides, reason) ?? reason;
