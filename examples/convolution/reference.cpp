// In double precision, one result after another.
extern "C" void convolution_reference(const furlong_block&, const float* image, const float* weights,
                                      float* out, uint32_t width, uint32_t height, uint32_t edge) {
  const size_t filter = edge;
  for (size_t y = 0; y < height; ++y)
    for (size_t x = 0; x < width; ++x) {
      double sum = 0;
      for (size_t fy = 0; fy < filter; ++fy)
        for (size_t fx = 0; fx < filter; ++fx)
          sum += static_cast<double>(weights[fy * filter + fx]) *
                 image[(y + fy) * (width + filter - 1) + x + fx];
      out[y * width + x] = static_cast<float>(sum);
    }
}
