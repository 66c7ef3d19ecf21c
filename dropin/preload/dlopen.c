/* Programs that open libibverbs.so.1 themselves (NCCL, Python's ctypes) look their functions up in that
 * handle, not in the preloaded library. They get a handle of the stand-in library, which has the functions with their
 * versions. The assembly function dlopen jumps to the function that softrnic_dlopen returns, so that the C library sees
 * the address of the original caller: its run path and its namespace apply. */
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef void *(*dlopen_function)(const char *file, int flags);

static dlopen_function next_dlopen;

/* The stand-in library loads the engine as well, by the function dlopen here. */
static int _Atomic engine_asked;

int softrnic_has_engine(void) { return atomic_load(&engine_asked); }

__attribute__((constructor)) static void find_dlopen(void)
{
	next_dlopen = (dlopen_function)dlsym(RTLD_NEXT, "dlopen");
}

void *softrnic_installed(const char *function)
{
	static const char *const libraries[] = { "libibverbs.so.1", "librdmacm.so.1" };
	if (!next_dlopen)
		find_dlopen();
	for (int i = 0; next_dlopen && i < 2; i++) {
		void *handle = next_dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL);
		void *symbol = handle ? dlsym(handle, function) : NULL;
		if (symbol)
			return symbol;
	}
	return NULL;
}

/* standin_name returns the name of the stand-in library for a file, or NULL. */
static const char *standin_name(const char *file)
{
	static const char name[] = "libibverbs.so.1"; /* librdmacm.so.1 remains that of the system */
	const char *slash = file ? strrchr(file, '/') : NULL;
	const char *base = slash ? slash + 1 : file;
	size_t stem = strlen(name) - 2;
	return base && strncmp(base, name, stem) == 0 && (base[stem] == 0 || strcmp(base + stem, name + stem) == 0) ? name : NULL;
}

/* open_standin opens the library that was asked for, which keeps its place as the first of its name for libraries that
 * need its private functions, and returns a handle of the stand-in. */
static void *open_standin(const char *file, int flags)
{
	void *handle = next_dlopen(file, flags);
	char path[PATH_MAX];
	const char *name = standin_name(file);
	if (!handle || softrnic_beside(path, sizeof path, "standin/%s.d/%s", name) != 0)
		return handle;
	void *standin = next_dlopen(path, flags & ~RTLD_NOLOAD);
	if (!standin)
		return handle;
	if (standin == handle) /* opened twice */
		dlclose(handle);
	return standin;
}

void *softrnic_dlopen(const char *file);

void *softrnic_dlopen(const char *file)
{
	if (!next_dlopen)
		find_dlopen();
	if (softrnic_is_engine(file))
		atomic_store(&engine_asked, 1);
	return standin_name(file) && !softrnic_is_off() ? (void *)open_standin : (void *)next_dlopen;
}
