/* ftw(3) and nftw(3) of /sys/class/infiniband and its kin. The C library reads directories by functions of its own that are
 * not redirected. So it walks through the engine's tree, and the program's function is given the paths that it expects. */
#define _GNU_SOURCE
#include "paths.h"
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A walk is the call that a thread is in. */
struct walk {
	const char *path; /* that the program walks through */
	size_t length;    /* of path, without slashes at its end */
	size_t skip;      /* length of the path in the engine's tree that stands for it */
	void *visit;      /* the program's function */
};

static __thread struct walk current;

/* start_walk makes the walk through path the thread's. It returns the path in the engine's tree, or NULL for a path that is
 * not redirected. */
static const char *start_walk(const char *path, void *visit, char *buffer, size_t size)
{
	const char *to = path && strstr(path, "infiniband") ? softrnic_redirect(AT_FDCWD, path, buffer, size) : path;
	if (to == path || path[0] == 0 || strncmp(path, "/dev", 4) == 0) /* nodes of /dev are no files of the tree */
		return NULL;
	struct walk w = { path, strlen(path), strlen(to), visit };
	for (; w.length > 1 && path[w.length - 1] == '/'; w.length--)
		;
	for (; w.skip > 1 && to[w.skip - 1] == '/'; w.skip--)
		;
	current = w;
	return to;
}

/* visited_path stores the path that the program expects for one of the engine's tree. */
static void visited_path(char *buffer, const char *file)
{
	snprintf(buffer, PATH_MAX, "%.*s%s", (int)current.length, current.path, file + current.skip);
}

#define DEFINE_WALK(name, type, status, parameters, arguments, visit_parameters, visit_arguments, before)                 \
	static int visit_##name visit_parameters                                                                       \
	{                                                                                                              \
		char path[PATH_MAX];                                                                                   \
		struct walk w = current;                                                                               \
		visited_path(path, file);                                                                              \
		before;                                                                                                \
		int result = ((type)w.visit)visit_arguments;                                                           \
		current = w; /* the program may have walked elsewhere */                                               \
		return result;                                                                                         \
	}                                                                                                              \
	static int (*next_##name) parameters;                                                                          \
	__attribute__((constructor)) static void find_##name(void)                                                     \
	{                                                                                                              \
		next_##name = (int (*) parameters)dlsym(RTLD_NEXT, #name);                                             \
	}                                                                                                              \
	PUBLIC int name parameters                                                                                     \
	{                                                                                                              \
		if (!next_##name)                                                                                      \
			find_##name();                                                                                 \
		if (!next_##name) {                                                                                    \
			errno = ENOSYS;                                                                                \
			return -1;                                                                                     \
		}                                                                                                      \
		char buffer[PATH_MAX];                                                                                 \
		const char *to = start_walk(path, (void *)visit, buffer, sizeof buffer);                               \
		if (to) {                                                                                              \
			path = to;                                                                                     \
			visit = visit_##name;                                                                          \
		}                                                                                                      \
		return next_##name arguments;                                                                          \
	}

/* The C library goes on with its structure. That of the program has the offset of the last name in the program's path. */
#define MOVE_BASE struct FTW moved = { f->base + (int)w.length - (int)w.skip, f->level }

#define DEFINE_FTW(name, type, status)                                                                                 \
	DEFINE_WALK(name, type, status, (const char *path, type visit, int descriptors), (path, visit, descriptors),    \
		    (const char *file, const struct status *s, int kind), (path, s, kind), )

#define DEFINE_NFTW(name, type, status)                                                                                \
	DEFINE_WALK(name, type, status, (const char *path, type visit, int descriptors, int flags),                    \
		    (path, visit, descriptors, flags), (const char *file, const struct status *s, int kind, struct FTW *f), \
		    (path, s, kind, &moved), MOVE_BASE)

DEFINE_FTW(ftw, __ftw_func_t, stat)
DEFINE_FTW(ftw64, __ftw64_func_t, stat64)
DEFINE_NFTW(nftw, __nftw_func_t, stat)
DEFINE_NFTW(nftw64, __nftw64_func_t, stat64)
