/* A wall clock that is wrong by the seconds in the file $WRONG_CLOCK, read again at every look. The monotonic clock stays
 * right, as on a machine whose time is set. Who waits until a time of the wrong clock is woken as the kernel of such a
 * machine would. libfaketime 0.9.10 cannot be used for it: it breaks clock_nanosleep. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/time.h>
#include <threads.h>
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

/* Times of the monotonic clock are small, those of the wall clock are not. */
static struct timespec rightly(const struct timespec *until) {
  struct timespec right = *until;
  if (right.tv_sec > 1000000000) right.tv_sec -= step_s();
  return right;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
  static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (!real) {
    *(void **)&real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  }
  struct timespec right = rightly(until);
  return real(cond, mutex, &right);
}

int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict until) {
  static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "cnd_timedwait");
  struct timespec right = rightly(until);
  return real(cond, mutex, &right);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
  static int (*real)(sem_t *, const struct timespec *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "sem_timedwait");
  struct timespec right = rightly(until);
  return real(semaphore, &right);
}
