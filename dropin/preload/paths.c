/* Functions of the C library that take a path: those of our devices are redirected to the engine's tree. Each calls the
 * next function of its name, which a constructor finds: dlsym in a child of fork may wait for a lock that another thread
 * of the parent held. */
#define _GNU_SOURCE
/* The names are defined here, so they must not be macros or inline functions. */
#undef _FORTIFY_SOURCE
#include "channel.h"
#include "paths.h"
#include "preload.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The functions with the return type, the value of failure, parameters and arguments. `q` is the redirected `path`. */
#define STAT_FUNCTIONS(F)                                                                                              \
	F(int, -1, stat, (const char *path, struct stat *s), (q, s))                                                   \
	F(int, -1, stat64, (const char *path, struct stat64 *s), (q, s))                                               \
	F(int, -1, lstat, (const char *path, struct stat *s), (q, s))                                                  \
	F(int, -1, lstat64, (const char *path, struct stat64 *s), (q, s))                                              \
	F(int, -1, fstatat, (int dir, const char *path, struct stat *s, int flags), (dir, q, s, flags))                \
	F(int, -1, fstatat64, (int dir, const char *path, struct stat64 *s, int flags), (dir, q, s, flags))            \
	F(int, -1, statx, (int dir, const char *path, int flags, unsigned mask, struct statx *s),                      \
	  (dir, q, flags, mask, s))

/* The functions of programs built before glibc 2.33. Their versions are no longer default ones. */
#define OLD_FUNCTIONS(F)                                                                                               \
	F(int, -1, __xstat, (int version, const char *path, struct stat *s), (version, q, s))                          \
	F(int, -1, __xstat64, (int version, const char *path, struct stat64 *s), (version, q, s))                      \
	F(int, -1, __lxstat, (int version, const char *path, struct stat *s), (version, q, s))                         \
	F(int, -1, __lxstat64, (int version, const char *path, struct stat64 *s), (version, q, s))                     \
	F(int, -1, __fxstatat, (int version, int dir, const char *path, struct stat *s, int flags),                    \
	  (version, dir, q, s, flags))                                                                                 \
	F(int, -1, __fxstatat64, (int version, int dir, const char *path, struct stat64 *s, int flags),                \
	  (version, dir, q, s, flags))

#define OTHER_FUNCTIONS(F)                                                                                             \
	F(int, -1, access, (const char *path, int mode), (q, mode))                                                    \
	F(int, -1, faccessat, (int dir, const char *path, int mode, int flags), (dir, q, mode, flags))                 \
	F(int, -1, __open_2, (const char *path, int flags), (q, flags))                                                \
	F(int, -1, __open64_2, (const char *path, int flags), (q, flags))                                              \
	F(int, -1, __openat_2, (int dir, const char *path, int flags), (dir, q, flags))                                \
	F(int, -1, __openat64_2, (int dir, const char *path, int flags), (dir, q, flags))                              \
	F(FILE *, NULL, fopen, (const char *path, const char *mode), (q, mode))                                        \
	F(FILE *, NULL, fopen64, (const char *path, const char *mode), (q, mode))                                      \
	F(ssize_t, -1, readlink, (const char *path, char *out, size_t n), (q, out, n))                                 \
	F(ssize_t, -1, readlinkat, (int dir, const char *path, char *out, size_t n), (dir, q, out, n))                 \
	F(ssize_t, -1, __readlink_chk, (const char *path, char *out, size_t n, size_t size), (q, out, n, size))        \
	F(ssize_t, -1, __readlinkat_chk, (int dir, const char *path, char *out, size_t n, size_t size),                \
	  (dir, q, out, n, size))                                                                                      \
	F(char *, NULL, realpath, (const char *path, char *out), (q, out))                                             \
	F(char *, NULL, __realpath_chk, (const char *path, char *out, size_t size), (q, out, size))                    \
	F(char *, NULL, canonicalize_file_name, (const char *path), (q))                                               \
	F(DIR *, NULL, opendir, (const char *path), (q))                                                               \
	F(int, -1, scandir, (const char *path, struct dirent ***list, filter_function filter, compare_function compare), \
	  (q, list, filter, compare))                                                                                  \
	F(int, -1, scandir64, (const char *path, struct dirent64 ***list, filter64_function filter,                    \
	  compare64_function compare), (q, list, filter, compare))

/* The functions with a mode that is only there if a file may be created. */
#define OPEN_FUNCTIONS(F)                                                                                              \
	F(open, (const char *path, int flags, ...), (q, flags, mode))                                                  \
	F(open64, (const char *path, int flags, ...), (q, flags, mode))                                                \
	F(openat, (int dir, const char *path, int flags, ...), (dir, q, flags, mode))                                  \
	F(openat64, (int dir, const char *path, int flags, ...), (dir, q, flags, mode))

typedef int (*filter_function)(const struct dirent *);
typedef int (*compare_function)(const struct dirent **, const struct dirent **);
typedef int (*filter64_function)(const struct dirent64 *);
typedef int (*compare64_function)(const struct dirent64 **, const struct dirent64 **);

#define INDEX_OPEN(name, parameters, arguments) index_##name,
#define INDEX(type, failure, name, parameters, arguments) index_##name,
enum { OPEN_FUNCTIONS(INDEX_OPEN) STAT_FUNCTIONS(INDEX) OTHER_FUNCTIONS(INDEX) functions_of_today };
enum { index_before_old = functions_of_today - 1, OLD_FUNCTIONS(INDEX) functions };

#define NAME_OPEN(name, parameters, arguments) #name,
#define NAME(type, failure, name, parameters, arguments) #name,
static const char names[functions][24] = {
	OPEN_FUNCTIONS(NAME_OPEN) STAT_FUNCTIONS(NAME) OTHER_FUNCTIONS(NAME) OLD_FUNCTIONS(NAME)
};

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST_VERSION "GLIBC_2.17"
#endif

static void *next[functions]; /* written with equal values by all threads */

static void *find_next(int index)
{
	void *function = __atomic_load_n(&next[index], __ATOMIC_RELAXED);
	if (!function) {
		function = index < functions_of_today ? dlsym(RTLD_NEXT, names[index])
						      : dlvsym(RTLD_NEXT, names[index], FIRST_VERSION);
		__atomic_store_n(&next[index], function, __ATOMIC_RELAXED);
	}
	return function;
}

__attribute__((constructor)) static void find_all(void)
{
	for (int i = 0; i < functions_of_today; i++)
		find_next(i);
}

/* The directory of functions without a parameter of this name. */
static const int dir = AT_FDCWD;

#define CALL_NEXT(type, failure, name, arguments)                                                                      \
	char buffer[512];                                                                                              \
	const char *q = softrnic_redirect(dir, path, buffer, sizeof buffer);                                                \
	__typeof__(&name) function = (__typeof__(&name))find_next(index_##name);                                       \
	if (!function) {                                                                                               \
		errno = ENOSYS;                                                                                        \
		return failure;                                                                                        \
	}                                                                                                              \
	return function arguments;

/* Old programs call these; headers no longer declare all of them. */
#define DECLARE(type, failure, name, parameters, arguments) type name parameters;
STAT_FUNCTIONS(DECLARE)
OTHER_FUNCTIONS(DECLARE)
OLD_FUNCTIONS(DECLARE)

#define DEFINE(type, failure, name, parameters, arguments)                                                             \
	PUBLIC type name parameters                                                                                    \
	{                                                                                                              \
		CALL_NEXT(type, failure, name, arguments)                                                              \
	}
STAT_FUNCTIONS(DEFINE)
OTHER_FUNCTIONS(DEFINE)
OLD_FUNCTIONS(DEFINE)

#define DEFINE_OPEN(name, parameters, arguments)                                                                       \
	PUBLIC int name parameters                                                                                     \
	{                                                                                                              \
		mode_t mode = 0;                                                                                       \
		if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {                                           \
			va_list list;                                                                                  \
			va_start(list, flags);                                                                         \
			mode = va_arg(list, mode_t);                                                                   \
			va_end(list);                                                                                  \
		}                                                                                                      \
		int channel = softrnic_open_channel(path, flags);                                                      \
		if (channel != NO_CHANNEL)                                                                             \
			return channel;                                                                                \
		CALL_NEXT(int, -1, name, arguments)                                                                    \
	}
OPEN_FUNCTIONS(DEFINE_OPEN)
