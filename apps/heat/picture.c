#include "picture.h"

#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLargestSide = 1024 };

/* Colours from black over purple and orange to light yellow, of evenly rising lightness, so that
 * equal steps of heat look equal. In between is interpolated. */
static const unsigned char kColours[][3] = {
    {0, 0, 4},     {22, 11, 57},   {66, 10, 104},  {106, 23, 110}, {147, 38, 103}, {188, 55, 84},
    {221, 81, 58}, {243, 120, 25}, {252, 165, 10}, {246, 215, 70}, {252, 255, 164}};
enum { kSteps = sizeof kColours / sizeof kColours[0] - 1 };

static void colour_of(double value, png_byte* rgb) {
  const double position = (value > 0 ? value < 1 ? value : 1 : 0) * kSteps;
  const int below = position < kSteps ? (int)position : kSteps - 1;
  const double share = position - below;
  for (int c = 0; c < 3; ++c) {
    rgb[c] = (png_byte)(kColours[below][c] * (1 - share) + kColours[below + 1][c] * share + 0.5);
  }
}

int picture_write(const char* path, const double* field, long n, double low, double high) {
  const long step = (n + kLargestSide - 1) / kLargestSide;
  const long side = (n + step - 1) / step;
  png_image image;
  memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = (png_uint_32)side;
  image.format = PNG_FORMAT_RGB;

  png_byte* pixels = malloc((size_t)(side * side) * 3);
  if (pixels == NULL) return -1;
  for (long i = 0; i < side; ++i) {
    for (long j = 0; j < side; ++j) {
      colour_of((field[i * step * n + j * step] - low) / (high - low), pixels + (i * side + j) * 3);
    }
  }
  errno = 0;
  const int written = png_image_write_to_file(&image, path, 0, pixels, 0, NULL);
  free(pixels);
  if (written) return 0;
  if (errno == 0) errno = EIO;
  return -1;
}
