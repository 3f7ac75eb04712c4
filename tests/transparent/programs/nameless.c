/* Named pipes whose names are gone, with what is in them: with both ends, and open for both. */
#include <sys/stat.h>

#include "step.h"

int main(void) {
  MUST(mkfifo("pipe", 0600) == 0 && mkfifo("both", 0600) == 0);
  const int in = open("pipe", O_RDONLY | O_NONBLOCK), out = open("pipe", O_WRONLY),
            both = open("both", O_RDWR);
  MUST(in >= 0 && out >= 0 && both >= 0 && unlink("pipe") == 0 && unlink("both") == 0);
  for (int i = 0; i < STEPS; ++i) {
    int from_pipe = 0, from_both = 0;
    MUST(write(out, &i, sizeof i) == sizeof i && write(both, &i, sizeof i) == sizeof i);
    if (i > 0) {
      MUST(read(in, &from_pipe, sizeof i) == sizeof i && from_pipe == i - 1);
      MUST(read(both, &from_both, sizeof i) == sizeof i && from_both == i - 1);
    }
    MUST((fcntl(in, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == (O_RDONLY | O_NONBLOCK));
    MUST((fcntl(out, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_WRONLY);
    MUST((fcntl(both, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_RDWR);
    step(i, (unsigned long)(from_pipe + from_both));
  }
  return DONE;
}
