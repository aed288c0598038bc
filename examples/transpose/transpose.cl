// Knobs: TILE edge of a tile, WORK rows a work-item, STAGED through local memory, PAD elements after a tile's row.
__kernel void transpose(__global const uint* in, __global uint* out, uint rows, uint columns) {
  const uint lane = get_local_id(0);
  const uint tile_column = get_group_id(0) * TILE;
  const uint tile_row = get_group_id(1) * TILE;
#if STAGED
  __local uint tile[TILE][TILE + PAD];
  for (uint k = get_local_id(1); k < TILE; k += TILE / WORK) {
    const uint row = tile_row + k, column = tile_column + lane;
    if (row < rows && column < columns) tile[k][lane] = in[row * columns + column];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint k = get_local_id(1); k < TILE; k += TILE / WORK) {
    const uint row = tile_row + lane, column = tile_column + k;
    if (row < rows && column < columns) out[column * rows + row] = tile[lane][k];
  }
#else
  for (uint k = get_local_id(1); k < TILE; k += TILE / WORK) {
    const uint row = tile_row + k, column = tile_column + lane;
    if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
  }
#endif
}
