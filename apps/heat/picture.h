/* Draws a square field of numbers as a PNG file. */
#ifndef HEAT_PICTURE_H
#define HEAT_PICTURE_H

/* `field` has n x n values, row by row; `low` is drawn black, `high` light yellow. Fields larger
 * than 1024 x 1024 are thinned out. Returns 0, or -1 with errno set. */
int picture_write(const char* path, const double* field, long n, double low, double high);

#endif
