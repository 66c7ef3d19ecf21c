// Signals of the program. The Go runtime installs handlers for faults and SIGPIPE when the library is loaded, and calls
// the handler that it found for a signal outside of Go code. Where it finds the default action it would print the stacks
// of its goroutines and exit with status 2, or ignore SIGPIPE. The handlers here are installed before and end the process
// as the default action does.
//
// The runtime also takes SIGURG to preempt goroutines, which build.sh turns off: the signal would interrupt system
// calls of the program.
#define _GNU_SOURCE
#include "engine.h"
#include "_cgo_export.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

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
enum { STACK = 256 << 10, GUARD = 64 << 10 }; // multiples of each page size

static pthread_key_t stack_key;

// free_stack is called at the end of a thread with what give_stack allocated.
static void free_stack(void *memory)
{
	stack_t stack;
	if (!sigaltstack(NULL, &stack) && stack.ss_sp == (char *)memory + GUARD) {
		stack.ss_flags = SS_DISABLE;
		if (sigaltstack(&stack, NULL))
			return;
	}
	munmap(memory, GUARD + STACK);
}

__attribute__((constructor(101))) static void make_key(void) { pthread_key_create(&stack_key, free_stack); }

// give_stack gives a thread an alternative stack for handlers of the program, unless it has one. That of the runtime is
// 32 KiB in its heap, where an overflow would overwrite other memory.
static void give_stack(void)
{
	stack_t stack;
	if (sigaltstack(NULL, &stack) || !(stack.ss_flags & SS_DISABLE))
		return;
	char *memory = mmap(NULL, GUARD + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return;
	stack = (stack_t){.ss_sp = memory + GUARD, .ss_size = STACK};
	if (mprotect(stack.ss_sp, STACK, PROT_READ | PROT_WRITE) || pthread_setspecific(stack_key, memory) ||
	    sigaltstack(&stack, NULL)) {
		pthread_setspecific(stack_key, NULL);
		munmap(memory, GUARD + STACK);
	}
}

struct start {
	void *(*function)(void *);
	void *argument;
};

static void *run_thread(void *data)
{
	struct start start = *(struct start *)data;
	free(data);
	give_stack();
	return start.function(start.argument);
}

// __wrap_pthread_create is called by the runtime for its threads, in which it leaves SIGCHLD and SIGPROF unblocked:
// handlers of the program run there as well.
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *), void *argument);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *), void *argument)
{
	struct start *start = malloc(sizeof *start);
	if (!start)
		return EAGAIN;
	*start = (struct start){function, argument};
	int error = __real_pthread_create(thread, attr, run_thread, start);
	if (error)
		free(start);
	return error;
}

uintptr_t __wrap__cgo_wait_runtime_init_done(void);
uintptr_t __real__cgo_wait_runtime_init_done(void);

uintptr_t __wrap__cgo_wait_runtime_init_done(void)
{
	static __thread __attribute__((tls_model("initial-exec"))) bool entered;
	if (!entered) {
		entered = true;
		sigset_t mask;
		pthread_sigmask(SIG_SETMASK, NULL, &mask);
		give_stack();
		go_enter_thread();
		sigdelset(&mask, SIGSEGV);
		sigdelset(&mask, SIGBUS);
		sigdelset(&mask, SIGFPE);
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
	}
	return __real__cgo_wait_runtime_init_done();
}
