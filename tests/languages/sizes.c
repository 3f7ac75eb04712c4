/* Prints how long C finds the structures that Fortran and Python have, too. */
#include "diapause/diapause.h"

void sizes_of_c(int64_t* sizes) {
  sizes[0] = sizeof(diapause_checkpoint_info);
  sizes[1] = sizeof(diapause_progress);
  sizes[2] = sizeof(diapause_restart_info);
  sizes[3] = sizeof(diapause_stop_info);
  sizes[4] = sizeof(diapause_region_info);
}
