/*
 * What a pod's sandbox runs: it waits, and does nothing else. Where the containers of a pod share one process namespace it is their PID 1, and
 * every process that lost its parent becomes its child: it reaps them. Ends with 0 on SIGTERM and SIGINT.
 *
 * Nothing but system calls, so that the file is the whole image: no libc, no data, no stack to speak of, one segment to load (which works with
 * pages of 4, 16 and 64 KiB). The signals stay blocked and are taken one by one; a blocked signal reaches PID 1 too, which has no default
 * handlers, and none that comes between two calls is lost.
 */
typedef unsigned long long sigset;

enum { SIGINT_ = 2, SIGTERM_ = 15, SIGCHLD_ = 17, SIG_BLOCK_ = 0, WNOHANG_ = 1, EINTR_ = 4, EAGAIN_ = 11 };
#define BIT(n) (1ull << ((n) - 1))

#if defined(__x86_64__)
enum { NR_rt_sigprocmask = 14, NR_wait4 = 61, NR_rt_sigtimedwait = 128, NR_exit_group = 231 };
static inline long call(long nr, long a, long b, long c, long d) {
  register long r10 __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
enum { NR_exit_group = 94, NR_rt_sigprocmask = 135, NR_rt_sigtimedwait = 137, NR_wait4 = 260 };
static inline long call(long nr, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = nr;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#elif defined(__arm__) && defined(__ARM_EABI__)
enum { NR_wait4 = 114, NR_rt_sigprocmask = 175, NR_rt_sigtimedwait = 177, NR_exit_group = 248 };
static inline long call(long nr, long a, long b, long c, long d) {
  register long r7 __asm__("r7") = nr;
  register long r0 __asm__("r0") = a;
  register long r1 __asm__("r1") = b;
  register long r2 __asm__("r2") = c;
  register long r3 __asm__("r3") = d;
  __asm__ volatile("svc #0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2), "r"(r3) : "memory");
  return r0;
}
#else
#error "no system calls for this machine"
#endif

static __attribute__((noreturn)) inline void leave(int code) {
  for (;;) call(NR_exit_group, code, 0, 0, 0);
}

__attribute__((noreturn)) void _start(void) {
  sigset set = BIT(SIGINT_) | BIT(SIGTERM_) | BIT(SIGCHLD_);
  call(NR_rt_sigprocmask, SIG_BLOCK_, (long)&set, 0, sizeof set);
  for (;;) {
    /* one SIGCHLD may stand for many that died, also for those before the first call */
    while (call(NR_wait4, -1, 0, WNOHANG_, 0) > 0) {
    }
    long got = call(NR_rt_sigtimedwait, (long)&set, 0, 0, sizeof set);
    if (got == SIGTERM_ || got == SIGINT_) leave(0);
    if (got < 0 && got != -EINTR_ && got != -EAGAIN_) leave(1); /* a kernel without this call: rather no pod than a busy loop */
  }
}
