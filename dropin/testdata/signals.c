// Signals of a program that has the engine loaded. The argument names the case.
#include "pair.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t caught;
static volatile int *nowhere;

static void count_signal(int number) { caught += number > 0; }

static void leave(int number) { _exit(50 + number); }

static void exit_whole(int number) { exit(50 + number); }

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = flags;
	CHECK(!sigaction(number, &action, NULL));
}

static struct ibv_context *context;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *a, *b;
static char memory[4096];

static void open_all(void)
{
	context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	CHECK(pd);
	CHECK((channel = ibv_create_comp_channel(context)));
	CHECK((cq = ibv_create_cq(context, 16, NULL, channel, 0)));
	CHECK((mr = ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS)));
	CHECK((a = create_qp(pd, cq, NULL, IBV_QPT_RC, 8)));
	CHECK((b = create_qp(pd, cq, NULL, IBV_QPT_RC, 8)));
	connect_qps(a, b);
}

// work transfers until a number of signals was caught, but at least once.
static void work(int signals)
{
	struct ibv_wc wc;
	do {
		CHECK(!post_write(a, mr, mr, 64, 1));
		CHECK(poll_one(cq, &wc) == IBV_WC_SUCCESS);
	} while (caught < signals);
}

static atomic_int transfers;

// work_on transfers until the process ends.
static void *work_on(void *unused)
{
	for (;; transfers++)
		work(0);
	return unused;
}

// fill_stack is a handler that uses 160 KiB of the stack.
static void fill_stack(int number)
{
	char room[160 << 10];
	memset(room, number, sizeof room);
	__asm__ volatile("" : : "r"(room) : "memory");
	count_signal(number);
}

// register_memory registers and deregisters until a number of signals was caught, which makes the runtime collect garbage.
static void register_memory(struct ibv_pd *pd, int signals)
{
	struct ibv_wc wc;
	while (caught < signals) {
		struct ibv_mr *region = ibv_reg_mr(pd, memory, sizeof memory, ALL_ACCESS);
		CHECK(region && !ibv_dereg_mr(region));
		CHECK(!ibv_poll_cq(cq, 1, &wc));
	}
}

// poll_blocked checks that three signals are blocked after a call.
static void *poll_blocked(void *unused)
{
	(void)unused;
	struct ibv_wc wc;
	sigset_t set;
	CHECK(!ibv_poll_cq(cq, 1, &wc));
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &set));
	CHECK(sigismember(&set, SIGCHLD) && sigismember(&set, SIGPROF) && sigismember(&set, SIGUSR1));
	return NULL;
}

static void poll_queue(int number)
{
	struct ibv_wc wc;
	if (ibv_poll_cq(cq, 1, &wc) == 0)
		count_signal(number);
}

static volatile sig_atomic_t done;

// interrupt sends SIGUSR1 to the main thread until that is done: a signal may come between two calls.
static void *interrupt(void *thread)
{
	while (!done) {
		usleep(1000);
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	const char *name = argv[1];
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	if (!strcmp(name, "profile")) { // a timer's handler interrupts posting and polling
		handle(SIGPROF, count_signal, SA_RESTART);
		open_all();
		struct itimerval timer = {{0, 1000}, {0, 1000}};
		CHECK(!setitimer(ITIMER_PROF, &timer, NULL));
		work(20);
	} else if (!strcmp(name, "profile-after") || !strcmp(name, "profile-old")) { // on stacks of the runtime, unless moved
		open_all();
		if (!strcmp(name, "profile-old"))
			CHECK(signal(SIGPROF, fill_stack) == SIG_DFL);
		else
			handle(SIGPROF, fill_stack, SA_RESTART);
		struct itimerval timer = {{0, 300}, {0, 300}};
		CHECK(!setitimer(ITIMER_PROF, &timer, NULL));
		register_memory(mr->pd, 200);
		work(0);
	} else if (!strcmp(name, "exit")) { // a handler that ends the program, most likely in a call
		open_all();
		handle(SIGPROF, exit_whole, 0);
		struct itimerval timer = {{0, 0}, {0, 3000}};
		CHECK(!setitimer(ITIMER_PROF, &timer, NULL));
		work(INT_MAX);
	} else if (!strcmp(name, "exit-elsewhere")) { // a thread that posts and polls sees no error while another ends the program
		open_all();
		pthread_t thread;
		CHECK(!pthread_create(&thread, NULL, work_on, NULL));
		while (transfers < 100)
			;
		exit(50);
	} else if (!strcmp(name, "mask")) { // blocked signals stay blocked in threads that use the device
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGCHLD);
		sigaddset(&set, SIGPROF);
		sigaddset(&set, SIGUSR1);
		CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
		open_all();
		CHECK(poll_blocked(NULL) == NULL);
		pthread_t thread;
		CHECK(!pthread_create(&thread, NULL, poll_blocked, NULL) && !pthread_join(thread, NULL));
		work(0);
	} else if (!strcmp(name, "call")) { // a handler that calls the engine
		open_all();
		handle(SIGALRM, poll_queue, SA_RESTART);
		struct itimerval timer = {{0, 1000}, {0, 1000}};
		CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
		while (caught < 20)
			;
		timer = (struct itimerval){{0, 0}, {0, 0}};
		CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
		work(0);
	} else if (!strcmp(name, "user")) {
		open_all();
		handle(SIGUSR1, count_signal, 0);
		CHECK(!raise(SIGUSR1));
		work(1);
	} else if (!strcmp(name, "interrupted")) { // ibv_get_cq_event returns with EINTR
		open_all();
		handle(SIGUSR1, count_signal, 0);
		pthread_t main_thread = pthread_self(), thread;
		CHECK(!pthread_create(&thread, NULL, interrupt, &main_thread));
		struct ibv_cq *event_cq;
		void *event_context;
		for (int i = 0; i < 2; i++) {
			CHECK(ibv_get_cq_event(channel, &event_cq, &event_context) == -1);
			CHECK(errno == EINTR && caught > 0);
		}
		done = 1;
		CHECK(!pthread_join(thread, NULL));
		work(2);
	} else if (!strcmp(name, "urgent")) { // the runtime does not use the program's SIGURG
		handle(SIGURG, count_signal, SA_RESTART);
		open_all();
		work(0);
		CHECK(caught == 0);
		CHECK(!raise(SIGURG));
		CHECK(caught == 1);
	} else if (!strcmp(name, "term") || !strcmp(name, "int")) {
		open_all();
		work(0);
		raise(name[0] == 't' ? SIGTERM : SIGINT);
	} else if (!strcmp(name, "fault")) {
		open_all();
		work(0);
		*nowhere = 1;
	} else if (!strcmp(name, "fault-list") || !strcmp(name, "fault-inline") || !strcmp(name, "fault-receive")) {
		// A list, or inline data, at a wild address.
		open_all();
		struct ibv_sge sge = {0x10, 8, 0};
		struct ibv_send_wr wr, *bad;
		struct ibv_recv_wr recv = {1, NULL, (struct ibv_sge *)0x10, 1}, *bad_recv;
		memset(&wr, 0, sizeof wr);
		wr.num_sge = 1;
		wr.sg_list = name[6] == 'l' ? (struct ibv_sge *)0x10 : &sge;
		wr.send_flags = IBV_SEND_INLINE;
		if (name[6] == 'r')
			ibv_post_recv(a, &recv, &bad_recv);
		else
			ibv_post_send(a, &wr, &bad);
	} else if (!strcmp(name, "fault-thread")) {
		open_all();
		pthread_t thread;
		CHECK(!pthread_create(&thread, NULL, (void *(*)(void *))(uintptr_t)16, NULL));
		pthread_join(thread, NULL);
	} else if (!strcmp(name, "fault-before")) { // a handler from before the engine was loaded
		handle(SIGSEGV, leave, 0);
		open_all();
		work(0);
		*nowhere = 1;
	} else if (!strcmp(name, "fault-after")) {
		open_all();
		handle(SIGSEGV, leave, 0);
		work(0);
		*nowhere = 1;
	} else if (!strcmp(name, "abort")) {
		open_all();
		abort();
	} else if (!strcmp(name, "pipe") || !strcmp(name, "pipe-ignored") || !strcmp(name, "pipe-handled")) {
		if (!strcmp(name, "pipe-ignored"))
			signal(SIGPIPE, SIG_IGN);
		if (!strcmp(name, "pipe-handled"))
			handle(SIGPIPE, count_signal, 0);
		open_all();
		work(0);
		int ends[2];
		CHECK(!pipe(ends));
		close(ends[0]);
		CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE);
	}
	printf("caught %d\n", (int)caught);
	return 0;
}
