/* Signal handlers of the program. The engine's Go runtime runs goroutines on small stacks in its heap, also in threads of
 * the program that are in a call. A handler there overwrites other memory unless the kernel switches to the alternative
 * stack, which the runtime gives to each of these threads: the handlers need SA_ONSTACK. The runtime sets it for those
 * that were there before, and the functions here for later ones. */
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

typedef int (*sigaction_function)(int, const struct sigaction *, struct sigaction *);

static void *next_sigaction;               /* written with equal values by all threads */
static unsigned long long _Atomic interrupting; /* signals whose handlers of signal(3) do not restart system calls, see siginterrupt(3) */

static int call_next(int number, const struct sigaction *action, struct sigaction *before)
{
	sigaction_function next = (sigaction_function)__atomic_load_n(&next_sigaction, __ATOMIC_RELAXED);
	if (!next) {
		next = (sigaction_function)dlsym(RTLD_NEXT, "sigaction");
		__atomic_store_n(&next_sigaction, (void *)next, __ATOMIC_RELAXED);
	}
	if (next)
		return next(number, action, before);
	errno = ENOSYS;
	return -1;
}

/* A handler of a signal must not have to look the function up. */
__attribute__((constructor)) static void find_sigaction(void) { call_next(SIGUSR1, NULL, &(struct sigaction){}); }

/* install is sigaction with SA_ONSTACK. */
static int install(int number, const struct sigaction *action, struct sigaction *before)
{
	if (!action || action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN)
		return call_next(number, action, before);
	struct sigaction changed = *action;
	if (softrnic_has_engine())
		changed.sa_flags |= SA_ONSTACK;
	int result = call_next(number, &changed, before);
	if (result == 0 && !(changed.sa_flags & SA_ONSTACK) && softrnic_has_engine()) { /* it was loaded meanwhile */
		changed.sa_flags |= SA_ONSTACK;
		call_next(number, &changed, NULL);
	}
	return result;
}

PUBLIC int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
	return install(number, action, before);
}

int __sigaction(int number, const struct sigaction *action, struct sigaction *before);

PUBLIC int __sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
	return install(number, action, before);
}

/* set_handler installs a handler with flags, whose signal is blocked while it runs unless SA_NODEFER. */
static sighandler_t set_handler(int number, sighandler_t handler, int flags)
{
	struct sigaction before, action = {.sa_handler = handler, .sa_flags = flags};
	if (handler == SIG_ERR || number < 1 || number >= NSIG) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (!(flags & SA_NODEFER))
		sigaddset(&action.sa_mask, number);
	return install(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

static unsigned long long bit_of(int number) { return 1ull << (number - 1) % 64; }

PUBLIC sighandler_t signal(int number, sighandler_t handler)
{
	int interrupts = number > 0 && atomic_load(&interrupting) & bit_of(number);
	return set_handler(number, handler, interrupts ? 0 : SA_RESTART);
}

sighandler_t bsd_signal(int number, sighandler_t handler);

PUBLIC sighandler_t bsd_signal(int number, sighandler_t handler) { return signal(number, handler); }

PUBLIC sighandler_t ssignal(int number, sighandler_t handler) { return signal(number, handler); }

PUBLIC sighandler_t sysv_signal(int number, sighandler_t handler)
{
	return set_handler(number, handler, SA_RESETHAND | SA_NODEFER);
}

PUBLIC sighandler_t __sysv_signal(int number, sighandler_t handler) { return sysv_signal(number, handler); }

PUBLIC int siginterrupt(int number, int interrupts)
{
	struct sigaction action;
	if (call_next(number, NULL, &action) != 0)
		return -1;
	if (interrupts) {
		atomic_fetch_or(&interrupting, bit_of(number));
		action.sa_flags &= ~SA_RESTART;
	} else {
		atomic_fetch_and(&interrupting, ~bit_of(number));
		action.sa_flags |= SA_RESTART;
	}
	return install(number, &action, NULL);
}

PUBLIC sighandler_t sigset(int number, sighandler_t handler)
{
	struct sigaction before, action = {.sa_handler = handler};
	sigset_t one, mask;
	sigemptyset(&one);
	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	int hold = handler == SIG_HOLD;
	if (sigaddset(&one, number) != 0 || install(number, hold ? NULL : &action, &before) != 0 ||
	    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &one, &mask) != 0)
		return SIG_ERR;
	return sigismember(&mask, number) ? SIG_HOLD : before.sa_handler;
}
