// Signals of the program. The Go runtime installs handlers for faults and SIGPIPE when the library is loaded, and calls
// the handler that it found for a signal outside of Go code. Where it finds the default action it would print the stacks
// of its goroutines and exit with status 2, or ignore SIGPIPE. The handlers here are installed before and end the process
// as the default action does.
//
// The runtime also takes SIGURG to preempt goroutines, which build.sh turns off: the signal would interrupt system
// calls of the program.
#include "engine.h"
#include "_cgo_export.h"

#include <signal.h>

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGPIPE};
static struct sigaction urgent; // of the program

// end_by_default restores the default action. A faulting instruction is executed again when the handler returns, and
// ends the process; SIGPIPE is sent again.
static void end_by_default(int number)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigaction(number, &action, NULL);
	if (number == SIGPIPE)
		raise(number); // pending until the handler returns
}

// The Go runtime is initialized by a constructor without priority, after this one.
__attribute__((constructor(101))) static void install_default_actions(void)
{
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		struct sigaction before, action = {.sa_handler = end_by_default, .sa_flags = SA_ONSTACK};
		if (!sigaction(signals[i], NULL, &before) && !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL)
			sigaction(signals[i], &action, NULL);
	}
	sigaction(SIGURG, NULL, &urgent);
}

// restore_signals gives SIGURG back to the program, after the runtime has taken it.
void restore_signals(void) { sigaction(SIGURG, &urgent, NULL); }

// __wrap__cgo_wait_runtime_init_done is called at the entry of each exported Go function, see signals.go. The runtime
// unblocks SIGCHLD and SIGPROF in a thread that calls Go for the first time, which the program may wait for with
// sigwait or signalfd. This makes the first call, and restores them. Only faults stay unblocked.
uintptr_t __wrap__cgo_wait_runtime_init_done(void);
uintptr_t __real__cgo_wait_runtime_init_done(void);

uintptr_t __wrap__cgo_wait_runtime_init_done(void)
{
	static __thread __attribute__((tls_model("initial-exec"))) bool entered;
	if (!entered) {
		entered = true;
		sigset_t mask;
		pthread_sigmask(SIG_SETMASK, NULL, &mask);
		go_enter_thread();
		sigdelset(&mask, SIGSEGV);
		sigdelset(&mask, SIGBUS);
		sigdelset(&mask, SIGFPE);
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
	}
	return __real__cgo_wait_runtime_init_done();
}
