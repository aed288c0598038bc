// Knobs: TILE edge of a tile; WRITES_COLUMNS: the inner loop reads along a row and writes along a column.
extern "C" void transpose(const furlong_block& block, const uint32_t* in, uint32_t* out, uint32_t rows,
                          uint32_t columns) {
  const uint32_t first_column = static_cast<uint32_t>(block.x) * TILE,
                 first_row = static_cast<uint32_t>(block.y) * TILE;
  const uint32_t last_column = first_column + TILE < columns ? first_column + TILE : columns;
  const uint32_t last_row = first_row + TILE < rows ? first_row + TILE : rows;
#if WRITES_COLUMNS
  for (uint32_t row = first_row; row < last_row; ++row)
    for (uint32_t column = first_column; column < last_column; ++column)
      out[static_cast<size_t>(column) * rows + row] = in[static_cast<size_t>(row) * columns + column];
#else
  for (uint32_t column = first_column; column < last_column; ++column)
    for (uint32_t row = first_row; row < last_row; ++row)
      out[static_cast<size_t>(column) * rows + row] = in[static_cast<size_t>(row) * columns + column];
#endif
}
