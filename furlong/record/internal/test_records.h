#pragma once
// The records that the golden files of this part were written from.

#include "furlong/record/record.h"

namespace furlong::record::internal {

inline RaceRecord lottery_record() {
  RaceRecord record;
  record.id = "01956a3c-8f00-7abc-8def-0123456789ab";
  record.ts = "2026-03-01T12:00:00Z";
  record.machine = "m-4f2a90c1d3e5";
  record.slot = "s-77aa01";
  record.agent = "0.1.0";
  record.card = "NVIDIA_GeForce_RTX_5090";
  record.silicon = {"NVIDIA", "sm_120", 170, 34190917632, 14001, "9c1f0a5b7d3e2f46", ""};
  record.vendor = "NVIDIA";
  record.backend = "cuda";
  record.driver = "580.95.05";
  record.compiler = "NVRTC 13.0";
  record.arch = "sm_120";
  record.program = "lottery";
  record.language = "cuda";
  record.source = "b3d1c0";
  record.epoch = "00f1e2d3c4b5a697";
  record.program_class = {{"loads", 128}, {"wide", 0}};
  record.unit = "MH/s";
  VariantDetail base, u2, ldg, u8;
  base.heats = 21;
  base.regs = 40;
  base.warps = 8;
  base.compile_ms = 61.5;
  base.power_w = 391;
  u2.gain_pct = 2.1;
  u2.ci = Interval{1.8, 2.4};
  u2.heats = 21;
  u2.regs = 48;
  u2.spills = 0;
  u2.warps = 8;
  u2.error = 0;
  u2.power_w = 398.5;
  ldg.gain_pct = -0.7;
  ldg.ci = Interval{-1.0, -0.4};
  ldg.heats = 4;
  ldg.regs = 40;
  ldg.warps = 8;
  ldg.out = "cannot win: at most -0.40% over base";
  ldg.exit = "eliminated";
  u8.out = "does not compile: ptxas fatal | out of memory";
  u8.exit = "compile";
  record.variants = {{"base", 115.9, base}, {"u2", 118.3, u2}, {"ldg", 115.1, ldg}, {"u8", std::nullopt, u8}};
  record.ceiling = 312;
  record.winner = "u2";
  record.rate = 118.3;
  record.base_rate = 115.9;
  record.gain_pct = 2.1;
  record.ci = Interval{1.8, 2.4};
  record.verdict = Verdict::winner;
  record.heats = 21;
  record.paused_ms = 512.25;
  record.compile_ms = 842;
  record.bench_ms = 655;
  record.total_ms = 1730.5;
  record.tuned = true;
  record.notes = {"3 heats were dropped: the throttle state changed"};
  record.power_limit_w = 400;
  record.power_w = 398.5;
  record.power_pct = 99.6;
  record.rate_per_w = 0.297;
  return record;
}

/// As a worker writes it: no id, machine or agent; another program's class; nothing could be timed, and
/// the kernel was not the one asked for.
inline RaceRecord failed_gemv_record() {
  RaceRecord record;
  record.ts = "2026-03-01T12:00:01.25Z";
  record.card = "pthread-AMD_EPYC";
  record.silicon = {"AMD", "x86-64-v4", 16, 0, 0, "00aa11bb22cc33dd", ""};
  record.backend = "opencl";
  record.driver = "3.1";
  record.arch = "x86-64-v4";
  record.program = "gemv";
  record.epoch = "0000000000000000";
  record.program_class = {{"n", 4096}, {"k", 11008}, {"type", "int8"}};
  record.unit = "GB/s";
  VariantDetail base;
  base.out = "failed its gate: element 17 is 3, not 4";
  base.fallback = true;
  record.variants = {{"base", std::nullopt, base}};
  record.compile_ms = 210;
  record.total_ms = 260;
  return record;
}

}  // namespace furlong::record::internal
