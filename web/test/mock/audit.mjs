// Audits of two programs, in the shape of docs/formats/audit.md.

const regime = (card, driver, features, gain, half, state, more = {}) => ({
  card, driver, class: features, races: 6,
  rate: { races: 6, pairs: 9, state, gain_pct: gain, ci: [Number((gain - half).toFixed(2)), Number((gain + half).toFixed(2))], median_pct: gain, min_pct: gain - half, max_pct: gain + half, disagree: false },
  contexts: [], faults: [], defects: [], costs: [], ...more,
});

const value = (v, verdict, why, regimes, more = {}) => ({
  value: v, verdict, why, races: 12, pairs: 18, races_missing: 0, regimes_missing: 0, without_partner: 0, fell_back: 0, untimed: 0,
  best: { regime: 0, gain_pct: regimes[0]?.rate.gain_pct ?? 0 }, worst: { regime: regimes.length - 1, gain_pct: regimes[regimes.length - 1]?.rate.gain_pct ?? 0 }, regimes, claims: [], ...more,
});

function lotteryReport() {
  const wide = { loads: 32, wide: 8 };
  const deep = { loads: 128, wide: 0 };
  return {
    threshold_pct: 0.5, min_races: 2, min_regimes: 3, source: '', any_source: false,
    records: { given: 48_219, used: 46_902, other_program: 0, other_language: 0, other_metric: 0, repeated: 1204, other_source: 113, no_interval: 0, fallbacks: 0, sources: 2 },
    knobs: [
      {
        knob: 'unroll', default: 1, verdict: 'trade-off', summary: 'trade-off: 2, 4; unproven: 8',
        values: [
          value(2, 'trade-off', 'wins: +2.07% (+1.80% to +2.40%) with loads=128 on NVIDIA_GeForce_RTX_5090, driver 580.95.05; loses: -1.00% (-1.18% to -0.82%) with loads=32 on NVIDIA_H200, driver 580.159.04', [
            regime('NVIDIA_GeForce_RTX_5090', '580.95.05', deep, 2.07, 0.3, 'wins', { costs: [{ measure: 'registers', races: 6, value: 48, beside: 40, change_pct: 20, state: 'loses' }] }),
            regime('NVIDIA_GeForce_RTX_4090', '570.124.06', deep, 1.2, 0.5, 'wins'),
            regime('NVIDIA_H200', '580.159.04', wide, -1.0, 0.18, 'loses'),
          ], { claims: [{ outcome: 'wins', where: 'loads >= 64', line: 31, state: 'confirmed', confirming: [0, 1], contradicting: [], undecided: [], unjudged: [] }, { outcome: 'loses', where: 'device.sm < 90', line: 34, state: 'contradicted', confirming: [], contradicting: [1], undecided: [], unjudged: [] }] }),
          value(8, 'unproven', 'too few regimes: 1 of 3', [regime('NVIDIA_H200', '580.159.04', deep, 0.1, 0.4, 'open', { faults: [{ variant: 'u8', exit: 'compile', why: 'ptxas fatal', races: 3, of_default: false }] })], { regimes_missing: 2, races_missing: 4 }),
        ],
      },
      { knob: 'load', default: 'plain', verdict: 'bake in', summary: 'bake in: ldg', values: [value('ldg', 'bake in', 'never loses: +0.60% (+0.21% to +0.99%) at worst, in 5 regimes', [regime('NVIDIA_A100-SXM4-80GB', '570.124.06', deep, 1.4, 0.3, 'wins'), regime('AMD_Radeon_RX_7900_XTX', '6.3.1', deep, 0.6, 0.39, 'wins')])] },
      { knob: 'vector', default: 1, verdict: 'drop', summary: 'drop: 2', values: [value(2, 'drop', 'never wins: -0.20% (-0.38% to -0.02%) at best, in 4 regimes', [regime('NVIDIA_H200', '580.159.04', deep, -0.2, 0.18, 'loses')])] },
    ],
    lost: [{ variant: 'u16', records: 4, why: "variant 'u16': 'u16' is no tag of this lattice; the nearest is 'u8'" }],
    defects: ['vec2 failed its gate in 1 race with loads=128, wide=0 on NVIDIA_H200, driver 580.159.04: gate: element 3: got 1, expected 2'],
    contradictions: ["knob 'unroll', value 2: the claim that it loses where device.sm < 90 (line 34): +1.20% (+0.70% to +1.70%) with loads=128 on NVIDIA_GeForce_RTX_4090, driver 570.124.06 (6 races)"],
  };
}

export function makeAudit() {
  const report = lotteryReport();
  const small = { ...report, knobs: report.knobs.slice(1), lost: [], defects: [], contradictions: [] };
  return {
    programs: [
      { program: 'lottery', language: 'cuda', knobs: 3, races: 46_902, verdicts: { 'trade-off': 1, 'bake in': 1, drop: 1, unproven: 1 } },
      { program: 'lottery', language: 'opencl', knobs: 2, races: 1317, verdicts: { 'bake in': 1, drop: 1 } },
      { program: 'gemv', language: 'cuda', knobs: 6, races: 0, verdicts: { unproven: 6 } },
    ],
    reports: { lottery: [{ language: 'cuda', report }, { language: 'opencl', report: small }], gemv: [{ language: 'cuda', report: { ...small, knobs: [], records: { given: 0, used: 0, sources: 0 } } }] },
  };
}
