extern "C" void transpose_reference(const furlong_block&, const uint32_t* in, uint32_t* out, uint32_t rows,
                                    uint32_t columns) {
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column) out[column * rows + row] = in[row * columns + column];
}
