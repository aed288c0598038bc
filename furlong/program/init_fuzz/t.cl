
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void transpose(__global const uchar4 *in, __global uint *out, __constant float *table, const unsigned int width, ulong height) {
  size_t x = get_global_id(0), y = get_global_id( 1 );
  out[x * height + y] = table[0] + in[y * width + x].x;
}
kernel void second(global int* p) { p[0] = 1; }
