/* The translation of paths. The engine's function softrnic_paths_root returns the root of a directory tree, or NULL:
 *
 *   /sys/class/infiniband[/...]         ROOT/infiniband[/...]
 *   /sys/class/infiniband_verbs[/...]   ROOT/infiniband_verbs[/...]
 *   /dev/infiniband                     ROOT/infiniband_verbs, whose entries are uverbs0, ...
 *   /dev/infiniband/uverbsN             /dev/null, if ROOT/infiniband_verbs/uverbsN exists, else that missing file
 *   /dev/infiniband/rdma_cm             /dev/null
 */
#define _GNU_SOURCE
#include "paths.h"
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYS "/sys/class/"
#define DEV "/dev/infiniband"

/* below reports whether path is dir or in it. */
static int below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	return strncmp(path, dir, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/* tree_root returns the root of the engine's tree, or NULL. */
static const char *tree_root(void)
{
	static const char *(*_Atomic root)(void);
	const char *(*function)(void) = atomic_load(&root);
	if (!function) {
		void *engine = softrnic_engine();
		void *symbol = engine ? dlsym(engine, "softrnic_paths_root") : NULL;
		if (!symbol)
			return NULL;
		memcpy(&function, &symbol, sizeof function);
		atomic_store(&root, function);
	}
	return function();
}

/* join stores the absolute path of a relative one. It returns -1 if the directory is not known or the path too long. */
static int join(int dir, const char *path, char *buffer, size_t size)
{
	char link[32];
	if (dir == AT_FDCWD)
		snprintf(link, sizeof link, "/proc/self/cwd");
	else
		snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
	long n = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, size);
	if (n <= 0 || (size_t)n >= size || buffer[0] != '/')
		return -1;
	if (n == 1) /* the root */
		n = 0;
	while (path[0] == '.' && path[1] == '/')
		path += 2;
	int rest = snprintf(buffer + n, size - n, "/%s", path);
	return rest < 0 || (size_t)rest >= size - n ? -1 : 0;
}

static const char *redirect_absolute(const char *path, char *buffer, size_t size);

const char *softrnic_redirect(int dir, const char *path, char *buffer, size_t size)
{
	if (!path || path[0] == '/')
		return redirect_absolute(path, buffer, size);
	if (!strstr(path, "infiniband"))
		return path;
	char whole[512];
	int saved = errno;
	int error = join(dir, path, whole, sizeof whole);
	errno = saved;
	if (error)
		return path;
	const char *to = redirect_absolute(whole, buffer, size);
	return to == whole ? path : to;
}

static const char *redirect_absolute(const char *path, char *buffer, size_t size)
{
	if (!path || (path[1] != 's' && path[1] != 'd'))
		return path;
	int sys = below(path, SYS "infiniband") || below(path, SYS "infiniband_verbs");
	int dev = !sys && below(path, DEV);
	if (!sys && !dev)
		return path;
	int saved = errno;
	const char *root = tree_root();
	if (!root || !*root) {
		errno = saved;
		return path;
	}
	int n;
	if (sys) {
		n = snprintf(buffer, size, "%s/%s", root, path + sizeof SYS - 1);
	} else {
		const char *name = path + sizeof DEV - 1;
		while (*name == '/')
			name++;
		n = snprintf(buffer, size, "%s/infiniband_verbs%s%s", root, *name ? "/" : "", name);
		int node = strncmp(name, "uverbs", 6) == 0;
		if (strcmp(name, "rdma_cm") == 0 ||
		    (node && syscall(SYS_faccessat, AT_FDCWD, buffer, F_OK) == 0))
			n = snprintf(buffer, size, "/dev/null");
		else if (*name && !node) /* umad0 and others are not ours */
			n = -1;
	}
	errno = saved;
	return n < 0 || (size_t)n >= size ? path : buffer;
}
