/* glob(3) of paths of our devices. The C library reads directories by functions of its own that are not redirected, unless
 * it is told to use others. */
#define _GNU_SOURCE
#include "preload.h"

#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

/* may_match reports whether a pattern may match paths of devices. */
static int may_match(const char *pattern)
{
	static const char sys[] = "/sys/class/inf", dev[] = "/dev/inf";
	return strncmp(pattern, sys, sizeof sys - 1) == 0 || strncmp(pattern, dev, sizeof dev - 1) == 0;
}

static void *open_directory(const char *path) { return opendir(path); }
static void close_directory(void *dir) { closedir(dir); }

#define DEFINE_GLOB(name, type, entry, read, status, follow, keep)                                                     \
	static struct entry *read_##name(void *dir) { return read(dir); }                                             \
	static int stat_##name(const char *restrict path, struct status *restrict s) { return follow(path, s); }      \
	static int lstat_##name(const char *restrict path, struct status *restrict s) { return keep(path, s); }       \
	static int (*next_##name)(const char *, int, int (*)(const char *, int), type *);                              \
	__attribute__((constructor)) static void find_##name(void)                                                     \
	{                                                                                                              \
		next_##name = (int (*)(const char *, int, int (*)(const char *, int), type *))dlsym(RTLD_NEXT, #name); \
	}                                                                                                              \
	PUBLIC int name(const char *pattern, int flags, int (*report)(const char *, int), type *result)               \
	{                                                                                                              \
		if (!next_##name)                                                                                      \
			find_##name();                                                                                 \
		if (!next_##name)                                                                                      \
			return GLOB_ABORTED;                                                                           \
		if (!(flags & GLOB_ALTDIRFUNC) && may_match(pattern)) {                                                \
			flags |= GLOB_ALTDIRFUNC;                                                                      \
			result->gl_opendir = open_directory;                                                           \
			result->gl_closedir = close_directory;                                                         \
			result->gl_readdir = read_##name;                                                              \
			result->gl_stat = stat_##name;                                                                 \
			result->gl_lstat = lstat_##name;                                                               \
		}                                                                                                      \
		return next_##name(pattern, flags, report, result);                                                    \
	}

DEFINE_GLOB(glob, glob_t, dirent, readdir, stat, stat, lstat)
DEFINE_GLOB(glob64, glob64_t, dirent64, readdir64, stat64, stat64, lstat64)
