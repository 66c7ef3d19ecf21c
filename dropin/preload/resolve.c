/* Resolution of the trampolines: the engine's softrnic_NAME, or the next NAME in the search order of the program. */
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#ifndef STANDIN
#define STANDIN 0 /* 1 in the stand-in library */
#endif

#define PREFIX "softrnic_"
#define ENGINE "libsoftrnic-engine.so"

/* An array of arrays, not of pointers, needs no relocation at the start of a program that uses no verbs. */
static const char names[][48] = {
#define FUNCTION(name) PREFIX #name,
#include "symbols.inc"
#undef FUNCTION
};
enum { count = sizeof names / sizeof names[0] };

/* softrnic_slots has the target of each trampoline, or NULL before its first call. */
__attribute__((visibility("hidden"))) void *_Atomic softrnic_slots[count];

static char none; /* its address stands for an engine that is not available */
static void *_Atomic engine;

/* report writes one line to stderr with system calls only: the caller may be anywhere. */
static void report(const char *object, const char *cause)
{
	char line[1024];
	int n = snprintf(line, sizeof line, "softrnic: %s: %s\n", object, cause);
	if (n >= (int)sizeof line)
		n = sizeof line - 1;
	if (n > 0 && write(STDERR_FILENO, line, n) < 0)
		return;
}

int softrnic_is_off(void)
{
	const char *mode = secure_getenv("SOFTRNIC_DROPIN");
	return mode && strcasecmp(mode, "off") == 0;
}

int softrnic_beside(char *path, size_t size, const char *format, const char *name)
{
	Dl_info self;
	const char *file = dladdr(names, &self) && self.dli_fname ? self.dli_fname : "";
	const char *slash = strrchr(file, '/');
	int length = slash ? (int)(slash + 1 - file) : 0;
	int dir = snprintf(path, size, "%.*s%s", length, file, STANDIN ? "../../" : "");
	if (dir < 0 || (size_t)dir >= size)
		return -1;
	int rest = snprintf(path + dir, size - dir, format, name, name);
	return rest < 0 || (size_t)rest >= size - dir ? -1 : 0;
}

#if !STANDIN
int softrnic_is_engine(const char *file)
{
	const char *given = secure_getenv("SOFTRNIC_ENGINE");
	if (!file || (given && strcmp(file, given) == 0))
		return file != NULL;
	const char *slash = strrchr(file, '/');
	return strcmp(slash ? slash + 1 : file, ENGINE) == 0;
}
#endif

/* open_engine opens SOFTRNIC_ENGINE, or the file beside the preloaded library. Threads of the Go runtime inherit the
 * signals that are blocked here: those that are sent to the process find a thread of the program. */
static void *open_engine(void)
{
	const char *given = secure_getenv("SOFTRNIC_ENGINE");
	char path[PATH_MAX];
	if (!given || !*given)
		given = softrnic_beside(path, sizeof path, "%s", ENGINE) == 0 ? path : ENGINE;
	sigset_t all, mask;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
	void *handle = dlopen(given, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return handle;
}

/* Without a lock: a child of fork would wait forever for one that another thread of its parent held. Threads that come
 * at the same time open the same library, and one of them stores the handle. */
void *softrnic_engine(void)
{
	void *handle = atomic_load_explicit(&engine, memory_order_acquire);
	if (handle)
		return handle == &none ? NULL : handle;
	const char *cause = NULL;
	handle = softrnic_is_off() ? &none : open_engine();
	if (!handle) {
		cause = dlerror();
		handle = &none;
	}
	void *before = NULL;
	if (!atomic_compare_exchange_strong(&engine, &before, handle))
		handle = before;
	else if (cause && !STANDIN) /* the preloaded library has reported it */
		report("cannot load the engine, the installed RDMA libraries are used", cause);
	return handle == &none ? NULL : handle;
}

/* Functions for programs that use fork, which need no engine: memory of the program is not pinned. A child of a process
 * that has loaded the engine cannot use it, and these are called before. */
static int succeed(void) { return 0; }
static int fork_unneeded(void) { return 2; } /* IBV_FORK_UNNEEDED */

/* own_function returns the function that this library has for a name, or NULL. */
static void *own_function(const char *name)
{
	if (strcmp(name, "ibv_fork_init") == 0 || strcmp(name, "ibv_dontfork_range") == 0 || strcmp(name, "ibv_dofork_range") == 0)
		return (void *)succeed;
	return strcmp(name, "ibv_is_fork_initialized") == 0 ? (void *)fork_unneeded : NULL;
}

/* next_function returns the function of an installed library, or NULL. A library that a plugin of the program needs is
 * not in the program's search order. The stand-in library is there because none is installed. */
static void *next_function(const char *name)
{
#if STANDIN
	(void)name;
	return NULL;
#else
	void *function = dlsym(RTLD_NEXT, name);
	return function ? function : softrnic_installed(name);
#endif
}

void *softrnic_resolve(unsigned index)
{
	int saved = errno;
	const char *name = names[index];
	void *function = softrnic_is_off() ? NULL : own_function(name + sizeof PREFIX - 1);
	void *handle = function ? NULL : softrnic_engine();
	if (handle)
		function = dlsym(handle, name);
	if (!function)
		function = next_function(name + sizeof PREFIX - 1);
	if (!function) {
		report(name + sizeof PREFIX - 1, "neither the engine nor an installed library has this function");
		_exit(127); /* as the dynamic linker ends a program with an undefined symbol */
	}
	atomic_store_explicit(&softrnic_slots[index], function, memory_order_release);
	errno = saved;
	return function;
}
