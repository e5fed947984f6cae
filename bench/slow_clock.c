/* A clock for a service that runs under valgrind, where everything takes some fifty times as long: it goes so much slower too.
   Else what is done by the clock (heartbeats, clients that are looked up again every second) would happen fifty times as often
   between two requests, on a slow machine still more often, and be counted with them. Loaded by LD_PRELOAD. */

#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLOWER = 50 };
static const long long SECOND = 1000000000;

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  /* What time it is stays true; how much time has passed does not. */
  if (!failed && clock == CLOCK_MONOTONIC) {
    long long nanos = (now->tv_sec * SECOND + now->tv_nsec) / SLOWER;
    now->tv_sec = nanos / SECOND;
    now->tv_nsec = nanos % SECOND;
  }
  return failed;
}

int epoll_wait(int poll, struct epoll_event *events, int most, int millis) {
  return (int)syscall(SYS_epoll_wait, poll, events, most, millis > 0 ? millis * SLOWER : millis);
}
