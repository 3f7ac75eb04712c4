/* A pseudo-terminal with a session of its own behind it, output that nobody has read yet, and a
 * named pipe. */
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "step.h"

/* The program of the terminal: answers when it is asked, by way of the terminal. */
static void be_session(const char* terminal, int told) {
  MUST(setsid() == getpid());
  const int end = open(terminal, O_RDWR);
  MUST(end >= 0 && tcgetsid(end) == getpid());
  MUST(write(end, "one\ntwo\n", 8) == 8);
  char byte = 0;
  MUST(write(told, "r", 1) == 1);
  MUST(read(end, &byte, 1) == 1 && byte == '?');
  struct winsize size;
  MUST(ioctl(end, TIOCGWINSZ, &size) == 0 && size.ws_row == 33 && size.ws_col == 99);
  MUST(tcgetsid(end) == getpid() && tcgetpgrp(end) == getpgrp());
  const int same = open("/dev/tty", O_RDWR);
  MUST(same >= 0 && write(same, "three\n", 6) == 6);
  MUST(read(end, &byte, 1) == 1 && byte == '\n');
  _exit(0);
}

static void read_exactly(int from, const char* text) {
  for (const char* at = text; *at != 0; ++at) {
    char byte = 0;
    MUST(read(from, &byte, 1) == 1 && byte == *at);
  }
}

int main(void) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  MUST(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
  struct termios settings;
  MUST(tcgetattr(master, &settings) == 0);
  settings.c_lflag &= ~(tcflag_t)ECHO;
  settings.c_cc[VERASE] = 'e';
  MUST(tcsetattr(master, TCSANOW, &settings) == 0);
  const struct winsize size = {33, 99, 0, 0};
  MUST(ioctl(master, TIOCSWINSZ, &size) == 0);
  char pipe_name[] = "pipe-XXXXXX";
  MUST(mkdtemp(pipe_name) != NULL && rmdir(pipe_name) == 0 && mkfifo(pipe_name, 0600) == 0);
  const int reader = open(pipe_name, O_RDONLY | O_NONBLOCK), writer = open(pipe_name, O_WRONLY);
  MUST(reader >= 0 && writer >= 0 && write(writer, "in the pipe", 11) == 11);
  int told[2];
  MUST(pipe(told) == 0);
  const pid_t child = fork();
  if (child == 0) be_session(ptsname(master), told[1]);
  char byte = 0;
  MUST(read(told[0], &byte, 1) == 1);
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)i * 3);
  read_exactly(master, "one\r\ntwo\r\n");
  struct termios found;
  MUST(tcgetattr(master, &found) == 0 && found.c_cc[VERASE] == 'e' &&
       (found.c_lflag & (tcflag_t)ECHO) == 0);
  MUST(write(master, "?\n", 2) == 2);
  read_exactly(master, "three\r\n");
  read_exactly(reader, "in the pipe");
  MUST(read(reader, &byte, 1) == -1 && errno == EAGAIN);
  struct stat of_path, of_end;
  MUST(stat(pipe_name, &of_path) == 0 && fstat(reader, &of_end) == 0 &&
       of_path.st_ino == of_end.st_ino);
  MUST(S_ISFIFO(of_end.st_mode) && unlink(pipe_name) == 0);
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  printf("all came\n");
  return DONE;
}
