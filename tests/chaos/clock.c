/* A wall clock that is wrong by the seconds in the file $WRONG_CLOCK, read again at every look. The monotonic clock stays
 * right, as on a machine whose time is set. libfaketime 0.9.10 cannot be used for it: it breaks clock_nanosleep. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long step_s(void) {
  char text[32] = {0};
  const char *path = getenv("WRONG_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return 0;
  long wrong = read(file, text, sizeof text - 1) > 0 ? strtol(text, NULL, 10) : 0;
  close(file);
  return wrong;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, now);
  if (!failed && clock == CLOCK_REALTIME) now->tv_sec += step_s();
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec precise;
  (void)zone;
  int failed = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return failed;
}

time_t time(time_t *now) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now) *now = precise.tv_sec;
  return precise.tv_sec;
}
