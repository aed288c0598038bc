// Knobs: GROUP work-items a group, COPIES private histograms a group, BYTES a load. PARTS groups are launched.
__kernel void clear(__global uint* bins) {
  for (uint i = get_local_id(0); i < 256; i += GROUP) bins[i] = 0;
}

__kernel void count(__global const uchar* data, uint n, __global uint* bins) {
  __local uint counts[COPIES * 256];
  for (uint i = get_local_id(0); i < COPIES * 256; i += GROUP) counts[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  __local uint* mine = counts + (get_local_id(0) % COPIES) * 256;
  const uint step = get_global_size(0);
#if BYTES == 4
  __global const uint* words = (__global const uint*)data;
  for (uint i = get_global_id(0); i < n / 4; i += step) {
    const uint word = words[i];
    atomic_inc(mine + (word & 255));
    atomic_inc(mine + ((word >> 8) & 255));
    atomic_inc(mine + ((word >> 16) & 255));
    atomic_inc(mine + (word >> 24));
  }
  for (uint i = n / 4 * 4 + get_global_id(0); i < n; i += step) atomic_inc(mine + data[i]);
#else
  for (uint i = get_global_id(0); i < n; i += step) atomic_inc(mine + data[i]);
#endif
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint i = get_local_id(0); i < 256; i += GROUP) {
    uint sum = 0;
    for (uint k = 0; k < COPIES; ++k) sum += counts[k * 256 + i];
    if (sum != 0) atomic_add(bins + i, sum);
  }
}
