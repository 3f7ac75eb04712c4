/* Securebits, bounding and ambient capabilities as far as the user may have some, and registered
 * barriers. */
#include <linux/membarrier.h>
#include <sys/prctl.h>

#include "step.h"

int main(void) {
  const int chown_right = 0, boot = 22; /* CAP_CHOWN, CAP_SYS_BOOT */
  const int may = geteuid() == 0;
  MUST(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0);
  if (may) {
    MUST(prctl(PR_CAPBSET_DROP, boot) == 0 && prctl(PR_SET_SECUREBITS, 4) == 0);
  }
  const long before = prctl(PR_CAPBSET_READ, chown_right);
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)i);
  MUST(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0);
  MUST(prctl(PR_CAPBSET_READ, chown_right) == before && prctl(PR_CAPBSET_READ, boot) == !may);
  MUST(prctl(PR_GET_SECUREBITS) == (may ? 4 : 0));
  printf("rights are kept\n");
  return DONE;
}
