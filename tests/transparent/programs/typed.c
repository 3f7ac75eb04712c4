/* Tests input that was typed at a pseudo-terminal and that no program has read: lines, a part of a
 * line, and single characters. */
#include <termios.h>

#include "step.h"

static int open_terminal(int* end) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  MUST(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
  *end = open(ptsname(master), O_RDWR | O_NOCTTY);
  MUST(*end >= 0);
  return master;
}

static void type(int master, const char* text) {
  MUST(write(master, text, strlen(text)) == (ssize_t)strlen(text));
}

static void must_read(int end, const char* expected) {
  char text[100] = "";
  const ssize_t got = read(end, text, sizeof text - 1);
  if (got != (ssize_t)strlen(expected) || strcmp(text, expected) != 0)
    printf("got %zd: %s\n", got, text);
}

int main(void) {
  int lines = -1, characters = -1;
  const int typing = open_terminal(&lines), hitting = open_terminal(&characters);
  struct termios settings;
  MUST(tcgetattr(lines, &settings) == 0);
  cfmakeraw(&settings);
  MUST(tcsetattr(characters, TCSANOW, &settings) == 0);
  type(typing, "first\nsecond\n");
  type(typing, "end\004");
  type(typing, "a part\177\177X");
  type(hitting, "x\003y\n\004");
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)i);
  type(typing, "t of it\n");
  pause_ms(20);
  must_read(lines, "first\n");
  must_read(lines, "second\n");
  must_read(lines, "end");
  must_read(lines, "a paXt of it\n");
  must_read(characters, "x\003y\n\004");
  struct termios now;
  MUST(tcgetattr(lines, &now) == 0 && (now.c_lflag & ICANON) != 0 && (now.c_lflag & ECHO) != 0);
  char echo[200] = "";
  MUST(read(typing, echo, sizeof echo - 1) > 0);
  char* const last = strstr(echo, "t of it");
  printf("echo %d\n", last != NULL && strstr(last + 1, "t of it") == NULL &&
                          strstr(echo, "first") == strstr(echo, "fi"));
  return DONE;
}
