/* Slows down the monotonic clock of a service that runs under valgrind, which makes it about fifty times slower. Otherwise
   periodic work (heartbeats, cache expiry) would run fifty times as often between two requests and be counted with them.
   Loaded by LD_PRELOAD. */

#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FACTOR = 50 };
static const long long SECOND = 1000000000;

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  /* The real-time clock is not changed. */
  if (!failed && clock == CLOCK_MONOTONIC) {
    long long nanos = (now->tv_sec * SECOND + now->tv_nsec) / FACTOR;
    now->tv_sec = nanos / SECOND;
    now->tv_nsec = nanos % SECOND;
  }
  return failed;
}

int epoll_wait(int poll, struct epoll_event *events, int max_events, int millis) {
  return (int)syscall(SYS_epoll_wait, poll, events, max_events, millis > 0 ? millis * FACTOR : millis);
}
