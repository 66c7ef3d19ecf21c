/* Calls through trampolines: arguments, errno, threads, dlopen and fork. The first argument selects the case. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The parameters of the engine of the tests, not of rdma-core. */
int64_t ibv_reg_mr(int, void *, size_t, int, int, int64_t);
int ibv_resize_cq(int, int, ...);
void *ibv_alloc_pd(void *);
int ibv_dealloc_pd(void *);
int ibv_query_port(void *, int);
const char *ibv_wc_status_str(int);
const char *ibv_event_type_str(int);

static pthread_barrier_t barrier;

static void *first_call(void *argument)
{
	pthread_barrier_wait(&barrier);
	return ibv_alloc_pd(argument);
}

static int run_threads(void)
{
	enum { threads = 16 };
	pthread_t thread[threads];
	pthread_barrier_init(&barrier, NULL, threads);
	for (intptr_t i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, first_call, (void *)(i * 8));
	int wrong = 0;
	for (intptr_t i = 0; i < threads; i++) {
		void *result;
		pthread_join(thread[i], &result);
		wrong += result != (void *)(i * 8 + 1);
	}
	return wrong;
}

/* open_library returns a function of a library that it opens, as NCCL does. */
static void *open_library(const char *library, const char *function, const char *version)
{
	void *handle = dlopen(library, RTLD_NOW);
	if (!handle)
		printf("%s\n", dlerror());
	return handle ? dlvsym(handle, function, version) : NULL;
}

static int call_opened(void)
{
	void *(*alloc_pd)(void *) = (void *(*)(void *))open_library("libibverbs.so.1", "ibv_alloc_pd", "IBVERBS_1.1");
	if (!alloc_pd || dlopen("libibverbs.so.77", RTLD_NOW) || !dlopen(NULL, RTLD_NOW))
		return -1;
	return alloc_pd((void *)41) == (void *)42 ? 0 : -2;
}

static int call_in_child(void)
{
	pid_t child = fork();
	if (child == 0) {
		alarm(10);
		_exit(ibv_alloc_pd((void *)41) == (void *)42 ? 0 : 1);
	}
	int status;
	waitpid(child, &status, 0);
	return status;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (strcmp(name, "integers") == 0) {
		for (int i = 0; i < 2; i++) /* the first call resolves */
			printf("%lld\n", (long long)ibv_reg_mr(1, (void *)2, 3, 4, 5, 6));
	} else if (strcmp(name, "doubles") == 0) {
		for (int i = 0; i < 2; i++)
			printf("%d\n", ibv_resize_cq(1, 2, 1., 2., 3., 4., 5., 6., 7., 8., 9., 10.));
	} else if (strcmp(name, "errno") == 0) {
		errno = ENOTTY;
		printf("%d\n", ibv_dealloc_pd(NULL) == ENOTTY);
	} else if (strcmp(name, "threads") == 0) {
		printf("%d\n", run_threads());
	} else if (strcmp(name, "fork") == 0) {
		printf("%d\n", call_in_child());
	} else if (strcmp(name, "opened") == 0) {
		printf("%d\n", call_opened());
	} else if (strcmp(name, "missing") == 0) {
		printf("%d\n", ibv_query_port(NULL, 1));
	} else if (strcmp(name, "strings") == 0) {
		printf("%s, %s\n", ibv_wc_status_str(12), ibv_event_type_str(0));
	}
	return 0;
}
