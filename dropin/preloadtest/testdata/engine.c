/* A small engine: functions of some trampolines that record their arguments, and a tree of paths from TEST_ROOT. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <stddef.h>
#include <unistd.h>

#define API(name) softrnic_##name

/* Six integers, the last two of which show that r8 and r9 survive the resolution. */
int64_t API(ibv_reg_mr)(int pd, void *buffer, size_t length, int protection, int flags, int64_t offset)
{
	return pd + 10 * (intptr_t)buffer + 100 * length + 1000 * protection + 10000 * flags + 100000 * offset;
}

/* Ten doubles behind two integers: eight in registers, two on the stack. */
int API(ibv_resize_cq)(int cq, int entries, ...)
{
	va_list list;
	va_start(list, entries);
	double sum = 0;
	for (int i = 1; i <= 10; i++)
		sum = 3 * sum + va_arg(list, double);
	va_end(list);
	return cq + entries + (int)sum;
}

/* A pointer that is not one, to compare. */
void *API(ibv_alloc_pd)(void *context)
{
	return (char *)context + 1;
}

/* ibv_dealloc_pd reports errno at its entry. */
int API(ibv_dealloc_pd)(void *pd)
{
	(void)pd;
	return errno;
}

const char *API(paths_root)(void)
{
	return getenv("TEST_ROOT");
}

/* The constructor shows on stderr that a program has loaded the engine, and spoils errno. */
__attribute__((constructor)) static void announce(void)
{
	static const char text[] = "engine loaded\n";
	if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
		abort();
	errno = EDOM;
}
