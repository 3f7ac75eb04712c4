/* Takes checkpoints of argv[1] MiB until it is killed. */
#include <stdlib.h>
#include <string.h>

#include "check.h"

int main(int argc, char** argv) {
  diapause_t* diapause;
  begin_checks_alone(argc, argv);
  const size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 1) << 20;
  char* const data = malloc(bytes);
  if (!CHECK(data != NULL) || !CHECK_STATUS(DIAPAUSE_OK, diapause_open("slowed", NULL, &diapause)))
    return 1;
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, "data", data, bytes, DIAPAUSE_UINT8));
  for (uint64_t version = 1;; ++version) {
    memset(data, (int)version, bytes);
    if (!CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, version, DIAPAUSE_L1, NULL)))
      return 1;
  }
}
