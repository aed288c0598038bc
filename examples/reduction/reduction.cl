// Knobs: GROUP work-items a group, WIDTH elements a load. PARTS groups are launched.

// Adds the work-items' sums as a tree; the result is in scratch[0] of work-item 0.
uint group_sum(uint sum, __local uint* scratch) {
  const uint lane = get_local_id(0);
  scratch[lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = GROUP / 2; half_size > 0; half_size /= 2) {
    if (lane < half_size) scratch[lane] += scratch[lane + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return scratch[0];
}

__kernel void partial_sums(__global const uint* x, uint n, __global uint* partial) {
  __local uint scratch[GROUP];
  const uint step = get_global_size(0);
  uint sum = 0;
#if WIDTH == 4
  const uint quads = n / 4;
  for (uint i = get_global_id(0); i < quads; i += step) {
    const uint4 v = vload4(i, x);
    sum += v.x + v.y + v.z + v.w;
  }
  for (uint i = quads * 4 + get_global_id(0); i < n; i += step) sum += x[i];
#else
  for (uint i = get_global_id(0); i < n; i += step) sum += x[i];
#endif
  const uint total = group_sum(sum, scratch);
  if (get_local_id(0) == 0) partial[get_group_id(0)] = total;
}

__kernel void final_sum(__global const uint* partial, uint parts, __global uint* result) {
  __local uint scratch[GROUP];
  uint sum = 0;
  for (uint i = get_local_id(0); i < parts; i += GROUP) sum += partial[i];
  const uint total = group_sum(sum, scratch);
  if (get_local_id(0) == 0) result[0] = total;
}
